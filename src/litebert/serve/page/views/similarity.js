// How alike several texts are: cosines of their vectors as a matrix.

import { el } from "../dom.js";
import { SIMILARITY_EXAMPLES } from "../examples.js";
import { Missing } from "../faults.js";
import { lines } from "../form.js";
import { count } from "../format.js";

function most(info) {
  return Math.min(24, info.max_client_batch_size ?? 24);
}

function cosine(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return Math.max(-1, Math.min(1, sum));
}

/** The two texts that are most alike, and their cosine. */
function closest(matrix) {
  let best = { i: 0, j: 1, value: -2 };
  for (let i = 0; i < matrix.length; i += 1) {
    for (let j = i + 1; j < matrix.length; j += 1) {
      if (matrix[i][j] > best.value) best = { i, j, value: matrix[i][j] };
    }
  }
  return best;
}

const signed = (value) => value.toFixed(2).replace("-", "−");

export const similarity = {
  id: "similarity",
  title: () => "Similarity",
  route: "/embed",
  usesDepth: true,
  fields: (info) => [{ name: "texts", label: "Texts", rows: 8, hint: `One a line, 2 to ${most(info)}.` }],
  body(values, info) {
    const texts = lines(values.texts);
    if (texts.length < 2) throw new Missing("type at least two texts, one a line");
    if (texts.length > most(info)) throw new Missing(`there are ${texts.length} texts; at most ${most(info)} are compared at once`);
    return { inputs: texts };
  },
  read: (vectors) => vectors.map((a) => vectors.map((b) => cosine(a, b))),
  render(matrix, values) {
    const texts = lines(values.texts);
    const off = matrix.flatMap((row, i) => row.filter((_, j) => j !== i));
    const low = Math.min(...off);
    const span = Math.max(1e-6, Math.max(...off) - low);
    const best = closest(matrix);
    const cell = (value, i, j) => el("td", {
      class: i === j ? "same" : "heat",
      css: i === j ? {} : { "--share": (0.04 + 0.46 * ((value - low) / span)).toFixed(3) },
    }, i === j ? "1" : signed(value));
    return [
      el("p", { class: "headline" }, el("span", { class: "headline-main" }, `${best.i + 1} and ${best.j + 1}`),
        el("span", { class: "headline-side" }, `are most alike: cosine ${signed(best.value)}`)),
      el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Matrix of cosines" },
        el("table", { class: "matrix" },
          el("caption", { class: "unseen" }, "Cosine of each text with each other"),
          el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Text"),
            texts.map((text, j) => el("th", { scope: "col", title: text }, String(j + 1))))),
          el("tbody", {}, matrix.map((row, i) => el("tr", {},
            el("th", { scope: "row", title: texts[i] }, el("span", { class: "rank" }, String(i + 1)), el("bdi", { class: "clip" }, texts[i])),
            row.map((value, j) => cell(value, i, j))))))),
      el("p", { class: "hint" }, `Colours span the cosines shown, from ${signed(low)} to ${signed(low + span)}.`),
    ];
  },
  summary(matrix) {
    const best = closest(matrix);
    return `Of ${count(matrix.length, "text")}, ${best.i + 1} and ${best.j + 1} are most alike, cosine ${signed(best.value)}`;
  },
  brief(matrix) {
    const best = closest(matrix);
    return { text: `${best.i + 1} and ${best.j + 1}: ${signed(best.value)}`, share: null };
  },
  examples: () => SIMILARITY_EXAMPLES.map(([title, ...texts]) => ({ title, values: { texts: texts.join("\n") } })),
  batch: {
    title: () => "vectors",
    columns: () => [{ name: "text", label: "Text", known: ["text", "sentence", "content"] }],
    body: (rows) => ({ inputs: rows.map((row) => row.text) }),
    answers: (answer) => answer,
    header: (info) => Array.from({ length: info.hidden_size }, (_, i) => `v${i}`),
    cells: (vector) => vector.map((value) => value.toPrecision(6)),
    tally: () => null,
  },
};
