// One view at work: inputs, examples, the answer, the dial and the answers at each depth.

import { makeDepthTable } from "./depths.js";
import { el, replace } from "./dom.js";
import { Missing, faultBox, isAbort, sentence } from "./faults.js";
import { makeForm } from "./form.js";
import { duration } from "./format.js";
import { Runner } from "./runner.js";

const PAUSE_MS = 300;

/** Return `{node, activate(), leave(), onDial()}`. `say` tells a screen reader. */
export function makeTaskPanel(view, session, dial, say) {
  const { info } = session;
  let typing = 0;
  let asked = null; // what the request under way was for

  const form = makeForm(view.fields(info), {
    onInput() {
      clearTimeout(typing);
      typing = setTimeout(() => changed(), PAUSE_MS);
    },
    onSend: () => changed(),
  });
  const result = el("div", { class: "result-body" }, el("p", { class: "hint" }, "Type a text or choose an example."));
  const time = el("span", { class: "time" });
  const usesDial = view.usesDepth && dial !== null;
  const table = usesDial ? makeDepthTable(info.depths, { onAll: runAll, onPick: (depth) => dial.set(depth) }) : null;

  const runner = new Runner({
    async work(signal) {
      const values = form.values();
      const depth = usesDial ? dial.depth : null;
      asked = { values, depth, isFixed: !usesDial || dial.isFixed };
      const body = { ...view.body(values, info), ...(usesDial ? dial.options(view) : {}) };
      return view.read(await session.post(view.route, body, { signal }), info);
    },
    onStart: () => panel.setAttribute("aria-busy", "true"),
    onEnd: () => panel.removeAttribute("aria-busy"),
    onDone(answer, ms) {
      panel.dataset.state = "answered";
      replace(result, view.render(answer, asked.values, info, { fill }));
      time.textContent = duration(ms);
      if (usesDial) {
        dial.note(ms, asked.depth, asked.isFixed);
        if (asked.isFixed) table.note(asked.depth, view.brief(answer, info), ms);
        else table.mark(asked.depth);
      }
      say(`${sentence(view.summary(answer, info))}${usesDial ? ` Depth ${asked.depth}, ${duration(ms)}.` : ""}`);
    },
    onFault(fault) {
      time.textContent = "";
      panel.dataset.state = fault instanceof Missing ? "wanting" : "failed";
      if (fault instanceof Missing) {
        replace(result, el("p", { class: "hint" }, sentence(fault)));
        say(sentence(fault));
        return;
      }
      replace(result, faultBox(fault, () => changed()));
    },
  });

  function changed() {
    clearTimeout(typing);
    if (usesDial) {
      dial.forget();
      table.clear();
    }
    runner.request({ hard: true });
  }

  function fill(values) {
    form.fill({ ...form.values(), ...values });
    changed();
  }

  async function runAll() {
    const values = form.values();
    try {
      const plain = view.body(values, info);
      for (let depth = 1; depth <= info.depths; depth += 1) {
        const start = performance.now();
        const answer = view.read(await session.post(view.route, { ...plain, depth }), info);
        if (JSON.stringify(form.values()) !== JSON.stringify(values)) return; // of another input
        const ms = performance.now() - start;
        table.note(depth, view.brief(answer, info), ms);
        dial.note(ms, depth);
      }
      table.mark(dial.depth);
      say(`All ${info.depths} depths have answered.`);
    } catch (fault) {
      if (isAbort(fault)) return;
      replace(result, faultBox(fault, null));
    }
  }

  const examples = view.examples(info);
  const panel = el("section", { class: "card result", "aria-label": "Result" },
    el("div", { class: "card-head" }, el("h2", {}, "Result"), time),
    result);
  const node = el("div", { class: "panel" },
    el("section", { class: "card input", "aria-label": "Input" },
      form.node,
      el("div", { class: "actions" },
        el("button", { type: "button", class: "main", title: "Ctrl+Enter", on: { click: () => changed() } }, "Run"),
        view.tools?.(info, form)),
      el("div", { class: "examples" },
        el("h3", { id: `examples-${view.id}` }, "Examples"),
        el("ul", { "aria-labelledby": `examples-${view.id}` }, examples.map((example) => el("li", {},
          el("button", { type: "button", class: "example", on: { click: () => fill(example.values) } },
            el("bdi", {}, example.title))))))),
    el("div", { class: "side" }, panel, el("div", { class: "dial-place" })),
    table?.node);

  return {
    node,
    activate() {
      if (!usesDial) return;
      dial.showRule(view);
      node.querySelector(".dial-place").replaceChildren(dial.node);
      dial.forget();
    },
    leave() {
      clearTimeout(typing);
      runner.stop();
    },
    onDial() {
      if (!usesDial) return;
      table.mark(dial.depth);
      if (Object.values(form.values()).every((value) => value === "")) return;
      runner.request();
    },
  };
}
