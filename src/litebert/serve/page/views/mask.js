// Words for the masks of a text.

import { bars } from "../bars.js";
import { el } from "../dom.js";
import { MASK_EXAMPLES } from "../examples.js";
import { Missing } from "../faults.js";
import { percent } from "../format.js";

/** A list of words for each mask; a single mask has no list around its own. */
function read(answer) {
  return Array.isArray(answer[0]) ? answer : [answer];
}

export const mask = {
  id: "mask",
  title: () => "Masked words",
  route: "/v1/fill-mask",
  usesDepth: true,
  fields: (info) => [{ name: "text", label: "Text", rows: 4, hint: `Put ${info.mask_token} where a word is missing.` }],
  tools: (info, form) => [
    el("button", { type: "button", class: "quiet", on: { click: () => form.insert("text", info.mask_token) } }, `Insert ${info.mask_token}`),
  ],
  body(values, info) {
    if (values.text.trim() === "") throw new Missing("type a text, or choose an example");
    if (!values.text.includes(info.mask_token)) throw new Missing(`put ${info.mask_token} where a word is missing`);
    return { inputs: values.text, top_k: 8 };
  },
  read,
  render(answer, values, info, actions) {
    return answer.map((words, place) => el("section", {},
      el("h3", {}, answer.length === 1 ? "Likeliest words" : `Mask ${place + 1} of ${answer.length}`),
      bars(words.map((word, rank) => ({
        label: word.token_str,
        share: word.score,
        isBest: rank === 0,
        action: "Put in place of the mask",
        onClick: () => actions.fill({ text: word.sequence }),
      }))),
      el("p", { class: "text", dir: "auto" }, words[0].sequence)));
  },
  summary: (answer) => answer.map((words) => `${words[0].token_str}, ${percent(words[0].score)}`).join("; "),
  brief: (answer) => ({
    text: answer.map((words) => words[0].token_str).join(" · "),
    share: answer.length === 1 ? answer[0][0].score : null,
  }),
  examples: (info) => MASK_EXAMPLES.map((text) => ({ title: text.replace("___", "…"), values: { text: text.replace("___", info.mask_token) } })),
  batch: {
    title: () => "masked words",
    isRare: true,
    atOnce: 1,
    fault: (row, info) => (row.text.includes(info.mask_token) ? null : `there is no ${info.mask_token} in the text`),
    columns: () => [{ name: "text", label: "Text with a mask", known: ["text", "sentence"] }],
    body: (rows) => ({ inputs: rows[0].text, top_k: 5 }),
    answers: (answer) => [read(answer)],
    header: () => ["words", "sequence"],
    cells: (answer) => [
      answer.map((words) => words.map((word) => word.token_str).join(" ")).join(" | "),
      answer[0][0].sequence,
    ],
    tally: () => null,
  },
};
