// Labels with probabilities, several labels, or a number; of a text or of a pair.

import { bars } from "../bars.js";
import { el } from "../dom.js";
import { examplesOfLabels } from "../examples_labels.js";
import { Missing } from "../faults.js";
import { number, percent } from "../format.js";

const isNumber = (info) => info.kind === "regression";
const isMany = (info) => info.kind === "multilabel";
const threshold = (info) => info.threshold ?? 0.5;

function chosen(answer, info) {
  if (isMany(info)) return answer.filter((item) => item.score >= threshold(info));
  return answer.slice(0, 1);
}

function words(answer, info) {
  if (isNumber(info)) return number(answer[0].score);
  const found = chosen(answer, info);
  return found.length === 0 ? "no label" : found.map((item) => item.label).join(", ");
}

export const classify = {
  id: "classify",
  title: (info) => (isNumber(info) ? "Score" : "Classify"),
  route: "/predict",
  usesDepth: true,
  fields(info) {
    if (!info.is_pair) return [{ name: "text", label: "Text", rows: 5, placeholder: "Type or paste a text" }];
    const [first, second] = info.text_columns ?? [];
    return [
      { name: "text", label: `First text${named(first)}`, rows: 3 },
      { name: "second", label: `Second text${named(second)}`, rows: 3 },
    ];
  },
  body(values, info) {
    if (values.text.trim() === "") throw new Missing("type a text, or choose an example");
    if (!info.is_pair) return { inputs: values.text };
    if (values.second.trim() === "") throw new Missing("this model compares two texts: type the second one, too");
    return { inputs: [[values.text, values.second]] };
  },
  read: (answer, info) => (info.is_pair ? answer[0] : answer),
  render(answer, values, info) {
    if (isNumber(info)) {
      return el("p", { class: "headline" }, el("span", { class: "headline-main" }, number(answer[0].score)),
        el("span", { class: "headline-side" }, answer[0].label));
    }
    const best = new Set(chosen(answer, info));
    const sure = isMany(info) ? `labels from ${percent(threshold(info))} on` : percent(answer[0].score);
    return [
      el("p", { class: "headline" },
        el("bdi", { class: "headline-main" }, words(answer, info)),
        el("span", { class: "headline-side" }, sure)),
      bars(
        answer.map((item) => ({ label: item.label, share: item.score, isBest: best.has(item) })),
        { mark: isMany(info) ? threshold(info) : null },
      ),
    ];
  },
  summary(answer, info) {
    if (isNumber(info)) return `Score ${number(answer[0].score)}`;
    return isMany(info) ? words(answer, info) : `${answer[0].label}, ${percent(answer[0].score)}`;
  },
  brief(answer, info) {
    return { text: words(answer, info), share: isNumber(info) || isMany(info) ? null : answer[0].score };
  },
  examples: examplesOfLabels,
  batch: {
    title: (info) => (isNumber(info) ? "scores" : "labels"),
    columns(info) {
      if (!info.is_pair) return [{ name: "text", label: "Text", known: ["text", "sentence", "review", "content"] }];
      const [first, second] = info.text_columns ?? [];
      return [
        { name: "text", label: "First text", known: [first, "sentence1", "text_a", "premise", "question1", "first"] },
        { name: "second", label: "Second text", known: [second, "sentence2", "text_b", "hypothesis", "question2", "second"] },
      ];
    },
    body: (rows, info) => ({ inputs: rows.map((row) => (info.is_pair ? [row.text, row.second] : row.text)) }),
    // A single pair is answered as one of many, and a text in a list as well.
    answers: (answer) => answer,
    header(info) {
      if (isNumber(info)) return ["score"];
      return ["prediction", ...(isMany(info) ? [] : ["probability"]), ...(info.labels.length <= 20 ? info.labels.map((label) => `p(${label})`) : [])];
    },
    cells(answer, info) {
      if (isNumber(info)) return [String(answer[0].score)];
      const scores = new Map(answer.map((item) => [item.label, item.score]));
      return [
        isMany(info) ? chosen(answer, info).map((item) => item.label).join("|") : answer[0].label,
        ...(isMany(info) ? [] : [answer[0].score.toFixed(6)]),
        ...(info.labels.length <= 20 ? info.labels.map((label) => (scores.get(label) ?? 0).toFixed(6)) : []),
      ];
    },
    tally: (answer, info) => (isNumber(info) ? null : isMany(info) ? chosen(answer, info).map((item) => item.label) : [answer[0].label]),
  },
};

function named(column) {
  return column && !/^(text|first|second|sentence)/i.test(column) ? ` (${column})` : "";
}
