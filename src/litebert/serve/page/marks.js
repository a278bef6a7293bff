// A text with marked spans: entities, slots, answers.

import { placesOf } from "./codepoints.js";
import { el } from "./dom.js";

const HUES = 8;

/**
 * Return the text with its spans marked. A span has `start` and `end` in code points, maybe `label`
 * and `hue` (a number). Of spans that overlap the first one is shown.
 */
export function marked(text, spans) {
  const place = placesOf(text);
  const parts = [];
  let done = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const start = place(span.start);
    const end = place(span.end);
    if (start < done || end <= start) continue;
    parts.push(text.slice(done, start), markOf(text.slice(start, end), span));
    done = end;
  }
  parts.push(text.slice(done));
  return el("p", { class: "text", dir: "auto" }, parts.filter((part) => part !== ""));
}

/** The number of the colour of each name, in the order given. */
export function huesOf(names) {
  return new Map([...new Set(names)].map((name, index) => [name, index % HUES]));
}

function markOf(text, span) {
  return el("mark", { class: `hue-${span.hue ?? 0}` },
    el("bdi", {}, text),
    span.label && el("span", { class: "mark-label" }, span.label));
}
