// The answer at each depth: filled as the dial turns, or all at once.

import { el, replace } from "./dom.js";
import { duration, percent } from "./format.js";

/**
 * Return `{node, note(depth, brief, ms), clear(), mark(depth)}`.
 * `onAll(isCancelled)` computes every depth; `onPick(depth)` turns the dial.
 */
export function makeDepthTable(depths, { onAll, onPick }) {
  const found = new Map();
  const body = el("tbody");
  const words = el("p", { class: "hint" });
  let here = depths;
  const all = el("button", { type: "button", class: "quiet", on: { click: run } }, "Run all depths");

  async function run() {
    all.disabled = true;
    try {
      await onAll();
    } finally {
      all.disabled = false;
    }
  }

  function draw() {
    const rows = [...found].sort(([a], [b]) => a - b);
    replace(body, rows.map(([depth, { brief, ms }]) => el("tr", { class: depth === here ? "here" : null },
      el("th", { scope: "row" }, el("button", {
        type: "button", class: "link", "aria-label": `Turn the dial to depth ${depth}`, on: { click: () => onPick(depth) },
      }, String(depth))),
      el("td", { class: "answer" }, el("bdi", {}, brief.text)),
      el("td", { class: "number" }, !Number.isFinite(brief.share) ? "" : [
        el("span", { class: "mini", "aria-hidden": "true", css: { "--share": brief.share.toFixed(3) } }), percent(brief.share)]),
      el("td", { class: "number" }, duration(ms)))));
    words.textContent = settled(rows);
    table.classList.toggle("plainly", rows.every(([, { brief }]) => !Number.isFinite(brief.share)));
    table.hidden = rows.length === 0;
  }

  /** From which depth on the answer is the last one's. */
  function settled(rows) {
    if (rows.length === 0) return "Which depth has the answer first? Turn the dial, or ask all of them.";
    if (rows.length < depths) return "";
    const last = rows.at(-1)[1].brief.text;
    let from = depths;
    while (from > 1 && rows[from - 2][1].brief.text === last) from -= 1;
    if (from === 1) return "Every depth gives the same answer.";
    return from === depths ? "Only the last depth gives this answer." : `The answer stays the same from depth ${from} on.`;
  }

  const table = el("table", { class: "plain depths" },
    el("thead", {}, el("tr", {}, ["Depth", "Answer", "Probability", "Time"].map((name) => el("th", { scope: "col" }, name)))),
    body);
  const node = el("section", { class: "card by-depth", "aria-label": "Answer at each depth" },
    el("div", { class: "card-head" }, el("h2", {}, "At each depth"), all), words,
    el("div", { class: "wide" }, table));
  draw();
  return {
    node,
    note(depth, brief, ms) {
      found.set(depth, { brief, ms });
      here = depth;
      draw();
    },
    mark(depth) {
      here = depth;
      draw();
    },
    clear() {
      found.clear();
      draw();
    },
  };
}
