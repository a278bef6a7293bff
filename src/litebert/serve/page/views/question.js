// Answers to a question, marked in the passage.

import { bars } from "../bars.js";
import { el } from "../dom.js";
import { QUESTION_EXAMPLES } from "../examples.js";
import { Missing } from "../faults.js";
import { percent } from "../format.js";
import { marked } from "../marks.js";

const NONE = "no answer in the passage";

export const question = {
  id: "question",
  title: () => "Answer questions",
  route: "/v1/qa",
  usesDepth: true,
  fields: () => [
    { name: "question", label: "Question", rows: 2 },
    { name: "context", label: "Passage", rows: 8, placeholder: "The text that holds the answer" },
  ],
  body(values) {
    if (values.question.trim() === "") throw new Missing("type a question, or choose an example");
    if (values.context.trim() === "") throw new Missing("paste the passage that may hold the answer");
    return { question: values.question, context: values.context, top_k: 4 };
  },
  read: (answer) => answer,
  render(answer, values) {
    const best = answer[0];
    const others = answer.filter((item) => item.answer !== "");
    return [
      el("p", { class: "headline" },
        el("bdi", { class: "headline-main" }, best.answer || NONE),
        el("span", { class: "headline-side" }, percent(best.score))),
      marked(values.context, best.answer ? [{ start: best.start, end: best.end, hue: 0 }] : []),
      others.length > 1 && el("h3", {}, "Best spans"),
      others.length > 1 && bars(others.map((item) => ({ label: item.answer, share: item.score, isBest: item === best }))),
      Number.isFinite(best.null_probability)
        && el("p", { class: "hint" }, `Probability that the passage holds no answer: ${percent(best.null_probability)}`),
    ];
  },
  summary: (answer) => `${answer[0].answer || NONE}, ${percent(answer[0].score)}`,
  brief: (answer) => ({ text: answer[0].answer || NONE, share: answer[0].score }),
  examples: () => QUESTION_EXAMPLES,
  batch: {
    title: () => "answers",
    columns: () => [
      { name: "question", label: "Question", known: ["question", "query"] },
      { name: "context", label: "Passage", known: ["context", "passage", "text", "document"] },
    ],
    fault: (row) => (row.question.trim() === "" ? "there is no question" : row.context.trim() === "" ? "there is no passage" : null),
    body: (rows) => ({ inputs: rows }),
    answers: (answer) => answer,
    header: () => ["answer", "probability", "start", "end"],
    cells: (answer) => [answer.answer, String(answer.score), String(answer.start), String(answer.end)],
    tally: () => null,
  },
};
