// Which choice answers a question.

import { bars } from "../bars.js";
import { el } from "../dom.js";
import { CHOICE_EXAMPLES } from "../examples.js";
import { Missing } from "../faults.js";
import { lines } from "../form.js";
import { percent } from "../format.js";

const MOST = 26;

function record(values) {
  const choices = lines(values.choices);
  if (choices.length < 2) throw new Missing("give at least two choices, one a line");
  if (choices.length > MOST) throw new Missing(`there are ${choices.length} choices; at most ${MOST} can be compared`);
  return { context: values.context, question: values.question, choices };
}

export const choose = {
  id: "choose",
  title: () => "Multiple choice",
  route: "/v1/choice",
  usesDepth: true,
  fields: () => [
    { name: "context", label: "Passage", rows: 5, hint: "May be left empty." },
    { name: "question", label: "Question", rows: 2 },
    { name: "choices", label: "Choices", rows: 4, hint: "One a line." },
  ],
  body(values) {
    if (values.question.trim() === "" && values.context.trim() === "") {
      throw new Missing("type a question, or choose an example");
    }
    return record(values);
  },
  read: (answer) => answer,
  render(answer, values) {
    const choices = lines(values.choices);
    return [
      el("p", { class: "headline" },
        el("bdi", { class: "headline-main" }, answer.choice),
        el("span", { class: "headline-side" }, percent(answer.score))),
      bars(
        choices.map((label, index) => ({ label, share: answer.probabilities?.[index] ?? 0, isBest: index === answer.index })),
        { shown: MOST },
      ),
    ];
  },
  summary: (answer) => `${answer.choice}, ${percent(answer.score)}`,
  brief: (answer) => ({ text: answer.choice, share: answer.score }),
  examples: () => CHOICE_EXAMPLES,
  batch: {
    title: () => "choices",
    columns: () => [
      { name: "context", label: "Passage", known: ["context", "passage", "article"], optional: true },
      { name: "question", label: "Question", known: ["question", "query"], optional: true },
      { name: "choices", label: "Choices", known: /^(choice|option|answer|ending)[ _]?\w*$|^[a-e]$/i, many: true },
    ],
    fault: (row) => (row.choices.filter((choice) => choice.trim() !== "").length < 2 ? "there are fewer than two choices" : null),
    body: (rows) => ({
      inputs: rows.map((row) => ({
        context: row.context, question: row.question, choices: row.choices.filter((choice) => choice.trim() !== ""),
      })),
    }),
    answers: (answer) => answer,
    header: () => ["choice", "index", "probability"],
    cells: (answer) => [answer.choice, String(answer.index), String(answer.score)],
    tally: () => null,
  },
};
