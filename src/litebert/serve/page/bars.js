// Shares as bars: a name, a bar, a number.

import { el, replace } from "./dom.js";
import { percent } from "./format.js";

const SHOWN = 10;

/**
 * Return a list of bars. An item has `label`, `share` from 0 to 1, and maybe `text` (in place of the
 * percentage), `isBest`, `onClick` with `action` (what the click does, in words).
 * `mark` is a share where a line is drawn.
 */
export function bars(items, { mark = null, shown = SHOWN } = {}) {
  const list = el("ul", { class: "bars" }, items.slice(0, shown).map((item) => bar(item, mark)));
  if (items.length <= shown) return list;
  const more = el("button", {
    type: "button", class: "quiet",
    on: { click: () => {
      replace(list, items.map((item) => bar(item, mark)));
      more.remove();
    } },
  }, `Show all ${items.length}`);
  return [list, more];
}

function bar(item, mark) {
  const share = Math.max(0, Math.min(1, item.share));
  const name = el("bdi", { class: "bar-name" }, item.label === "" ? "(nothing)" : item.label);
  return el("li", { class: item.isBest ? "bar best" : "bar", css: { "--share": share.toFixed(4) } },
    item.onClick
      ? el("button", { type: "button", class: "link bar-label", title: item.action,
        "aria-label": `${item.action}: ${item.label}`, on: { click: item.onClick } }, name)
      : el("span", { class: "bar-label" }, name),
    el("span", { class: "bar-track", "aria-hidden": "true" },
      el("span", { class: "bar-fill" }),
      mark !== null && el("span", { class: "bar-mark", css: { "--mark": mark } })),
    el("span", { class: "bar-number" }, item.text ?? percent(item.share)));
}
