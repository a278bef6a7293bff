// The pieces of a text, and where each stands in it.

import { cut } from "../codepoints.js";
import { el } from "../dom.js";
import { TOKEN_EXAMPLES } from "../examples.js";
import { Missing } from "../faults.js";
import { count } from "../format.js";

const MOST_ROWS = 1000;

function place(piece) {
  return piece.start === null || piece.start === undefined ? "" : `${piece.start}–${piece.stop}`;
}

export const tokens = {
  id: "tokens",
  title: () => "Tokens",
  route: "/tokenize",
  usesDepth: false,
  fields: () => [{ name: "text", label: "Text", rows: 5, placeholder: "Type or paste a text" }],
  body(values) {
    if (values.text === "") throw new Missing("type a text, or choose an example");
    return { inputs: values.text };
  },
  read: (answer) => answer[0],
  render(pieces, values, info) {
    const limit = info.task_max_length ?? info.max_input_length;
    const shown = pieces.slice(0, MOST_ROWS);
    const characters = [...values.text].length;
    const real = pieces.filter((piece) => !piece.special).length;
    return [
      el("p", { class: "headline" }, el("span", { class: "headline-main" }, count(pieces.length, "token")),
        el("span", { class: "headline-side" }, `of ${limit} that are read at once; ${(characters / Math.max(1, real)).toFixed(1)} characters a piece`)),
      pieces.length > limit && el("p", { class: "hint" }, "What comes after the limit is cut off, or read in a further window where the task has windows."),
      el("ol", { class: "pieces", "aria-label": "Pieces" }, shown.map((piece, index) => el("li", {
        class: piece.special ? "piece special" : index >= limit ? "piece beyond" : "piece",
        title: place(piece) ? `characters ${place(piece)}` : "not from the text",
      }, el("bdi", {}, piece.text), el("span", { class: "piece-id" }, String(piece.id))))),
      pieces.length > shown.length && el("p", { class: "hint" }, `The first ${count(MOST_ROWS)} are shown.`),
      el("details", {},
        el("summary", {}, "Table with places"),
        el("table", { class: "plain" },
          el("thead", {}, el("tr", {}, ["Piece", "Id", "Place", "In the text"].map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, shown.map((piece) => el("tr", {},
            el("td", {}, el("bdi", { class: "code" }, piece.text)),
            el("td", { class: "number" }, String(piece.id)),
            el("td", { class: "number" }, place(piece)),
            el("td", {}, el("bdi", { class: "code" }, place(piece) ? cut(values.text, piece.start, piece.stop) : ""))))))),
    ];
  },
  summary: (pieces) => count(pieces.length, "token"),
  brief: (pieces) => ({ text: count(pieces.length, "token"), share: null }),
  examples: () => TOKEN_EXAMPLES,
};
