// Bodies of requests, checked as the server checks them: what is not known is refused.

import { Fault } from "./faults.js";

const COMMON = ["model", "depth", "exit"];
const MOST_CHOICES = 26;

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function wrong(name, wanted) {
  throw new Fault(`${name}: ${wanted}`);
}

/** The object, if all its keys are known. */
export function known(body, names) {
  if (!isObject(body)) throw new Fault("the body must be an object");
  for (const name of Object.keys(body)) {
    if (![...names, ...COMMON].includes(name)) {
      throw new Fault(`${name.slice(0, 60)}: not known here; known: ${[...names, ...COMMON].join(", ")}`);
    }
  }
  return body;
}

export function text(value, name) {
  return typeof value === "string" ? value : wrong(name, "must be a text");
}

export function filled(value, name) {
  return text(value, name) ? value : wrong(name, "must not be empty");
}

export function texts(value, name) {
  if (!Array.isArray(value)) wrong(name, "must be a list of texts");
  return value.map((item, number) => text(item, `${name}.${number}`));
}

export function flag(value, name, usual) {
  if (value === undefined || value === null) return usual;
  return typeof value === "boolean" ? value : wrong(name, "must be true or false");
}

export function count(value, name, usual, most = Infinity) {
  if (value === undefined || value === null) return usual;
  const isRight = Number.isInteger(value) && value >= 1 && value <= most;
  return isRight ? value : wrong(name, `must be a whole number, 1 ${most < Infinity ? `to ${most}` : "and more"}`);
}

/** Which end of a long text stays. */
export function kept(value) {
  if (value === undefined || value === null) return "head";
  const word = String(value).toLowerCase();
  if (word !== "left" && word !== "right") wrong("truncation_direction", "must be Left or Right");
  return word === "left" ? "tail" : "head";
}

/** A text or a list of texts: the list, and whether it was a single one. */
export function inputs(value) {
  if (typeof value === "string") return { items: [value], isSingle: true };
  return { items: texts(value, "inputs"), isSingle: false };
}

/** Texts or pairs: `[first, second or null]` of each; two plain texts are one pair where pairs are taken. */
export function pairs(value, takesPairs) {
  if (typeof value === "string") return { items: [[value, null]], isSingle: true };
  if (!Array.isArray(value)) wrong("inputs", "must be a text, or a list of texts or of pairs");
  if (takesPairs && value.length === 2 && value.every((item) => typeof item === "string")) {
    return { items: [value], isSingle: true };
  }
  const items = value.map((item, number) => {
    if (typeof item === "string") return [item, null];
    const parts = texts(item, `inputs.${number}`);
    if (parts.length !== 1 && parts.length !== 2) wrong(`inputs.${number}`, "must have one or two texts");
    return [parts[0], parts[1] ?? null];
  });
  return { items, isSingle: false };
}

/** Questions with their passages. */
export function questions(body) {
  const read = (item) => {
    known(item, ["question", "context"]);
    return { question: filled(item.question, "question"), context: filled(item.context, "context") };
  };
  const hasOwn = body.question !== undefined && body.context !== undefined;
  if ((body.inputs === undefined) !== hasOwn || (!hasOwn && (body.question ?? body.context) !== undefined)) {
    throw new Fault("give either question and context, or inputs");
  }
  if (hasOwn) return { items: [read({ question: body.question, context: body.context })], isSingle: true };
  if (!Array.isArray(body.inputs)) return { items: [read(body.inputs)], isSingle: true };
  return { items: body.inputs.map(read), isSingle: false };
}

/** Questions with their choices. */
export function choices(body) {
  const read = (item) => {
    known(item, ["question", "context", "choices"]);
    const found = texts(item.choices, "choices");
    if (found.length < 2 || found.length > MOST_CHOICES) wrong("choices", `must be 2 to ${MOST_CHOICES} texts`);
    return { question: text(item.question ?? "", "question"), context: text(item.context ?? "", "context"), choices: found };
  };
  if ((body.inputs === undefined) === (body.choices === undefined)) {
    throw new Fault("give either choices with a question, or inputs");
  }
  if (body.inputs === undefined) {
    const { question, context, choices: given } = body;
    return { items: [read({ question, context, choices: given })], isSingle: true };
  }
  if (!Array.isArray(body.inputs)) wrong("inputs", "must be a list");
  return { items: body.inputs.map(read), isSingle: false };
}
