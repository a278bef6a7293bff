// Where the rows of a batch come from: a file that is dropped or chosen, or pasted text.

import { decoded, parseCsv } from "./csv.js";
import { el, freshId } from "./dom.js";
import { sentence } from "./faults.js";
import { count } from "./format.js";

const MOST_BYTES = 200_000_000;
const SEPARATOR_NAMES = { ",": "separated by commas", ";": "separated by semicolons", "\t": "separated by tabs", "|": "separated by bars", "": "a text a line" };

/** Return the part of the page; `onTable({rows, separator, hasMark, name, words})` is told what was read. */
export function makeSource(onTable, say) {
  const state = el("p", { class: "hint", role: "status" });
  const input = el("input", {
    type: "file", class: "unseen", id: freshId("file"), accept: ".csv,.tsv,.txt,text/csv,text/plain,text/tab-separated-values",
    on: { change: () => { if (input.files[0]) readFile(input.files[0]); input.value = ""; } },
  });
  const zone = el("div", {
    class: "drop",
    on: {
      dragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
      dragleave: () => zone.classList.remove("over"),
      drop: (event) => {
        event.preventDefault();
        zone.classList.remove("over");
        const file = event.dataTransfer.files[0];
        if (file) readFile(file);
        else readText(event.dataTransfer.getData("text/plain"));
      },
    },
  },
  el("p", {}, "Drop a CSV file here, or "),
  input,
  el("label", { for: input.id, class: "button" }, "choose a file"));
  const pastedId = freshId("pasted");
  const pasted = el("textarea", { id: pastedId, rows: 4, dir: "auto", spellcheck: "false", placeholder: "text,label\n\"works well, and quiet\",good" });

  async function readFile(file) {
    if (file.size > MOST_BYTES) {
      fail(`the file has ${Math.round(file.size / 1e6)} MB; at most ${MOST_BYTES / 1e6} MB are read here: use litebert predict for it`);
      return;
    }
    try {
      const { text, encoding, hasMark } = decoded(await file.arrayBuffer());
      await take(text, file.name, hasMark, encoding);
    } catch {
      fail("the file cannot be read; is it still there?");
    }
  }

  async function readText(text) {
    await take(text, "pasted.csv", false, null);
  }

  async function take(text, name, hasMark, encoding) {
    if (text.trim() === "") {
      fail("there is nothing in it; give a table with a row for each text");
      return;
    }
    if (text.slice(0, 4096).includes("\0")) {
      fail("this is no text; save the table as CSV first");
      return;
    }
    state.className = "hint";
    const { rows, separator, isCut } = await parseCsv(text, (share) => { state.textContent = `Reading … ${Math.round(100 * share)} %`; });
    const words = [count(rows.length, "row"), SEPARATOR_NAMES[separator], encoding].filter(Boolean).join(", ");
    state.textContent = `${name}: ${words}.${isCut ? " A quote is opened and never closed: the last row holds the rest." : ""}`;
    say(state.textContent);
    onTable({ rows, separator: separator || ",", hasMark, name });
  }

  function fail(reason) {
    state.className = "hint wrong";
    state.textContent = sentence(reason);
  }

  return el("section", { class: "card input", "aria-label": "Rows" },
    zone,
    el("div", { class: "field" }, el("label", { for: pastedId }, "Or paste rows"), pasted),
    el("div", { class: "actions" },
      el("button", { type: "button", class: "quiet", on: { click: () => readText(pasted.value) } }, "Use these rows")),
    state);
}
