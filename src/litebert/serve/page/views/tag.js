// Entities in a text; of a joint model the intent and the slots.

import { el } from "../dom.js";
import { TAG_EXAMPLES, UTTERANCE_EXAMPLES } from "../examples.js";
import { Missing } from "../faults.js";
import { count, percent } from "../format.js";
import { huesOf, marked } from "../marks.js";

const INTENT = "intent:";
const hasIntents = (info) => info.labels.some((label) => label.startsWith(INTENT));

/** Entities and intent, whichever of the two shapes the answer has. */
function read(answer) {
  const found = Array.isArray(answer) ? answer : answer.slots;
  return {
    intent: Array.isArray(answer) ? null : answer.intent,
    score: Array.isArray(answer) ? null : answer.score,
    entities: found.map((item) => ({
      label: item.entity_group ?? item.label,
      text: item.word ?? item.text,
      score: item.score,
      start: item.start,
      end: item.end,
    })),
  };
}

function typesOf(info) {
  return info.labels
    .filter((label) => !label.startsWith(INTENT))
    .map((label) => label.replace(/^[A-Z]-/, ""))
    .filter((label) => label !== "O");
}

function told({ intent, entities }) {
  const named = entities.map((item) => `${item.text} (${item.label})`).join(", ");
  if (intent !== null) return named ? `${intent}: ${named}` : intent;
  return named || "no entity";
}

export const tag = {
  id: "tag",
  title: (info) => (hasIntents(info) ? "Intent and slots" : "Entities"),
  route: "/v1/ner",
  usesDepth: true,
  fields: () => [{ name: "text", label: "Text", rows: 5, placeholder: "Type or paste a text" }],
  body(values) {
    if (values.text.trim() === "") throw new Missing("type a text, or choose an example");
    return { inputs: values.text };
  },
  read,
  render(answer, values, info) {
    const hues = huesOf([...typesOf(info), ...answer.entities.map((item) => item.label)]);
    const spans = answer.entities.map((item) => ({ ...item, hue: hues.get(item.label) }));
    return [
      el("p", { class: "headline" },
        el("bdi", { class: "headline-main" }, answer.intent ?? count(spans.length, "entity", "entities")),
        answer.intent !== null && el("span", { class: "headline-side" }, `${percent(answer.score)} for intent and every word`)),
      marked(values.text, spans),
      spans.length === 0
        ? answer.intent !== null && el("p", { class: "hint" }, "There is no slot in this text.")
        : el("table", { class: "plain" },
          el("caption", { class: "unseen" }, "Entities with their probabilities"),
          el("thead", {}, el("tr", {}, ["Entity", "Type", "Probability", "Place"].map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, spans.map((item) => el("tr", {},
            el("td", {}, el("bdi", {}, item.text)),
            el("td", {}, el("span", { class: `chip hue-${item.hue}` }, item.label)),
            el("td", { class: "number" }, Number.isFinite(item.score) ? percent(item.score) : "–"),
            el("td", { class: "number" }, `${item.start}–${item.end}`))))),
    ];
  },
  summary: (answer) => (answer.entities.length === 0 || answer.intent !== null
    ? told(answer) : `${count(answer.entities.length, "entity", "entities")}: ${told(answer)}`),
  brief: (answer) => ({ text: told(answer), share: answer.score }),
  examples: (info) => (hasIntents(info) ? UTTERANCE_EXAMPLES : TAG_EXAMPLES),
  batch: {
    title: (info) => (hasIntents(info) ? "intents and slots" : "entities"),
    columns: () => [{ name: "text", label: "Text", known: ["text", "sentence", "utterance", "content"] }],
    fault: (row) => (row.text.trim() === "" ? "there is no text" : null),
    body: (rows) => ({ inputs: rows.map((row) => row.text) }),
    answers: (answer) => answer.map(read),
    header: (info) => (hasIntents(info) ? ["intent", "probability", "slots"] : ["entities"]),
    cells(answer, info) {
      const entities = JSON.stringify(answer.entities);
      return hasIntents(info) ? [answer.intent, String(answer.score), entities] : [entities];
    },
    tally: (answer) => (answer.intent === null ? answer.entities.map((item) => item.label) : [answer.intent]),
  },
};
