// Many texts at once: a table in, the same table with the answers out.

import { bars } from "./bars.js";
import { makeColumns } from "./batch_columns.js";
import { runBatch } from "./batch_run.js";
import { makeSource } from "./batch_source.js";
import { wellFormed } from "./codepoints.js";
import { breathe, csvLine } from "./csv.js";
import { el, freshId, replace } from "./dom.js";
import { faultBox, sentence } from "./faults.js";
import { count, duration, percent } from "./format.js";

const ROWS_AT_ONCE = 2000;
const SHOWN = 50;

/** Return `{node, activate(), leave(), onDial()}` for the views of a model that take many rows. */
export function makeBatchPanel(views, session, dial, say) {
  const { info } = session;
  let view = views[0];
  let table = null;
  let columns = null;
  let control = null;
  let url = "";

  const viewId = freshId("what");
  const what = el("select", { id: viewId, on: { change: () => { view = views[Number(what.value)]; show(); } } },
    views.map((one, place) => el("option", { value: place }, one.batch.title(info))));
  const chooser = views.length > 1 && el("div", { class: "field" }, el("label", { for: viewId }, "Wanted"), what);
  const place = el("div", {}, el("p", { class: "hint" }, "What comes back is your table with columns added. Rows stay in their order."));
  const start = el("button", { type: "button", class: "main", disabled: true, on: { click: run } }, "Run");
  const stop = el("button", { type: "button", class: "quiet", hidden: true, on: { click: () => control?.abort() } }, "Cancel");
  const progressId = freshId("progress");
  const progress = el("progress", { max: 1, value: 0, hidden: true, "aria-labelledby": progressId });
  const state = el("p", { class: "hint", id: progressId });
  const outcome = el("div", {});

  function show() {
    if (table === null) return;
    replace(outcome);
    state.textContent = "";
    columns = makeColumns(table, view.batch.columns(info), () => {
      if (columns !== null) update();
    });
    replace(place, columns.node);
    update();
  }

  function update() {
    const problem = columns.problem();
    start.disabled = problem !== null;
    start.textContent = problem === null ? `Run ${count(columns.body().length, "row")}` : "Run";
    state.textContent = problem === null ? "" : sentence(problem);
  }

  async function run() {
    control = new AbortController();
    const job = { view, table, names: columns.names, rows: columns.body(), pick: columns.pick };
    const asked = dial !== null && view.usesDepth ? dial.options(view) : {};
    const inputs = job.rows.map((row) => clean(job.pick(row)));
    const faults = inputs.map((row) => view.batch.fault?.(row, info) ?? null);
    const asking = inputs.filter((_, at) => faults[at] === null); // the others need not be sent
    const answers = new Array(asking.length);
    const size = Math.max(1, Math.min(view.batch.atOnce ?? Infinity, info.max_client_batch_size ?? 32));
    const began = performance.now();
    busy(true);
    replace(outcome);
    let quarter = 0;
    try {
      await runBatch({
        rows: asking, size, signal: control.signal, found: answers,
        ask: async (rows, signal) => job.view.batch.answers(await session.post(job.view.route, { ...job.view.batch.body(rows, info), ...asked }, { signal })),
        onProgress(done) {
          const ms = performance.now() - began;
          progress.value = done / asking.length;
          state.textContent = `${count(done)} of ${count(asking.length)} rows, ${count(Math.round(1000 * done / ms))} a second, ${duration(ms / done * (asking.length - done))} left`;
          if (Math.floor(4 * done / asking.length) > quarter) {
            quarter = Math.floor(4 * done / asking.length);
            say(`${25 * quarter} percent done.`);
          }
        },
      });
    } catch (fault) {
      replace(outcome, faultBox(fault, null));
    }
    const isCancelled = control.signal.aborted;
    busy(false);
    const rest = answers[Symbol.iterator](); // with holes where nothing was answered
    const found = faults.map((error) => (error === null ? rest.next().value : { error }));
    await finish(job, found, isCancelled, performance.now() - began);
  }

  function busy(isBusy) {
    start.hidden = isBusy;
    stop.hidden = !isBusy;
    progress.hidden = !isBusy;
    progress.value = 0;
    if (isBusy) stop.focus();
    else start.focus();
  }

  async function finish(job, found, isCancelled, ms) {
    if (job.table !== table) return; // another table has come meanwhile
    const done = found.filter((one) => one !== undefined).length;
    const failed = found.filter((one) => one?.error !== undefined).length;
    if (done === 0) {
      state.textContent = isCancelled ? "Cancelled before the first answer." : "";
      return;
    }
    const told = `${isCancelled ? "Cancelled after" : "Done:"} ${count(done, "row")} in ${duration(ms)}`
      + `${failed > 0 ? `; ${count(failed, "row")} could not be answered, the column error says why` : ""}.`;
    state.textContent = told;
    say(told);
    const parts = await csvOf(job, found, failed > 0);
    URL.revokeObjectURL(url);
    url = URL.createObjectURL(new Blob(parts, { type: "text/csv;charset=utf-8" }));
    const name = `${job.table.name.replace(/\.[^.]*$/, "")}-${job.view.batch.title(info).replaceAll(" ", "-")}.csv`;
    outcome.append(
      el("div", { class: "actions" }, el("a", { class: "button main", href: url, download: name }, "Download results")),
      ...tallyOf(job, found),
      resultTable(job, found));
  }

  async function csvOf(job, found, hasErrors) {
    const { separator, hasMark } = job.table;
    const head = [...job.names, ...job.view.batch.header(info), ...(hasErrors ? ["error"] : [])];
    const blank = job.view.batch.header(info).map(() => "");
    const parts = [hasMark ? "\ufeff" : "", csvLine(head, separator)];
    for (let from = 0; from < job.rows.length; from += ROWS_AT_ONCE) {
      let text = "";
      job.rows.slice(from, from + ROWS_AT_ONCE).forEach((row, offset) => {
        const one = found[from + offset];
        const own = job.names.map((_, column) => row[column] ?? "");
        const cells = one?.answer !== undefined ? job.view.batch.cells(one.answer, info) : blank;
        text += csvLine([...own, ...cells, ...(hasErrors ? [one?.error ?? ""] : [])], separator);
      });
      parts.push(text);
      await breathe();
    }
    return parts;
  }

  function tallyOf(job, found) {
    const counts = new Map();
    let all = 0;
    for (const one of found) {
      const names = one?.answer === undefined ? null : job.view.batch.tally(one.answer, info);
      if (names === null) continue;
      all += 1;
      for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    if (counts.size === 0) return [];
    const items = [...counts].sort(([, a], [, b]) => b - a)
      .map(([label, times]) => ({ label, share: times / all, text: `${count(times)} · ${percent(times / all)}` }));
    return [el("h3", {}, "How often"), ...[bars(items)].flat()];
  }

  function resultTable(job, found) {
    const added = job.view.batch.header(info).slice(0, 4);
    const rows = job.rows.slice(0, SHOWN);
    const column = job.view.batch.columns(info)[0].name;
    return el("section", {},
      el("h3", {}, rows.length < job.rows.length ? `First ${SHOWN} rows` : "Rows"),
      el("div", { class: "wide tall", tabindex: "0", role: "region", "aria-label": "Rows with answers" },
        el("table", { class: "plain preview" },
          el("thead", {}, el("tr", {}, ["#", column, ...added].map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, rows.map((row, place_) => {
            const one = found[place_];
            const shown = job.pick(row)[column];
            const cells = one?.answer !== undefined ? job.view.batch.cells(one.answer, info).slice(0, added.length) : added.map((_, i) => (i === 0 ? one?.error ?? "" : ""));
            return el("tr", {}, el("td", { class: "number" }, String(place_ + 1)),
              el("td", {}, el("bdi", { class: "clip" }, [shown].flat().join(" | "))),
              cells.map((cell) => el("td", {}, el("bdi", { class: "clip" }, cell))));
          })))));
  }

  const node = el("div", { class: "panel" },
    makeSource((read) => { control?.abort(); table = read; show(); }, say),
    el("div", { class: "side" },
      el("section", { class: "card result", "aria-label": "Batch" },
        el("div", { class: "card-head" }, el("h2", {}, "Table")), chooser, place,
        el("div", { class: "actions" }, start, stop), progress, state, outcome),
      el("div", { class: "dial-place" })));
  return {
    node,
    activate() {
      if (dial === null) return;
      dial.forget();
      node.querySelector(".dial-place").replaceChildren(dial.node);
      dial.showRule(view);
    },
    leave() {},
    onDial() {},
  };
}

function clean(values) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [
    name, Array.isArray(value) ? value.map(wellFormed) : wellFormed(value)]));
}
