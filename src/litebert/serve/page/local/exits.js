// When the answer of a shallow depth is taken; the same as `litebert/tasks/exit_rules.py`.
//
// Every sequence goes through the depths by itself, so nothing depends on its company.

import { Fault } from "./faults.js";
import { packRows } from "./packing.js";

const CRITERIA = ["patience", "confidence", "entropy"];
const EXAMPLES = "patience=2, confidence=0.9, entropy=0.2";
const RANGES = {
  patience: "a whole number, 1 and more",
  confidence: "more than 0, at most 1",
  entropy: "0 and more, below 1",
};

/** Read `patience=2`, `confidence=0.9` or `entropy=0.2`, with `,tolerance=0.05` and `,first=3`. */
export function parseExit(text) {
  const values = new Map();
  for (const word of text.split(",")) {
    const [name, value, ...rest] = word.split("=").map((part) => part.trim());
    const number = value ? Number(value) : NaN;
    if (rest.length || Number.isNaN(number) || values.has(name)) {
      throw new Fault(`exit '${text.slice(0, 80)}'; give one of ${EXAMPLES}, or auto`);
    }
    values.set(name, number);
  }
  const tolerance = values.get("tolerance") ?? 0.1;
  const first = values.get("first") ?? 1;
  values.delete("tolerance");
  values.delete("first");
  if (values.size !== 1) {
    throw new Fault(`exit '${text.slice(0, 80)}' names ${values.size} criteria; give one of ${EXAMPLES}`);
  }
  const [[criterion, threshold]] = values;
  if (!CRITERIA.includes(criterion)) {
    throw new Fault(`exit criterion '${criterion.slice(0, 60)}'; known: ${CRITERIA.join(", ")}`);
  }
  const isRight = {
    patience: Number.isInteger(threshold) && threshold >= 1,
    confidence: threshold > 0 && threshold <= 1,
    entropy: threshold >= 0 && threshold < 1,
  }[criterion];
  if (!isRight) throw new Fault(`exit ${criterion}=${threshold}; allowed: ${RANGES[criterion]}`);
  if (!(tolerance >= 0 && tolerance < Infinity)) throw new Fault(`exit tolerance=${tolerance}; allowed: 0 and more`);
  if (!Number.isInteger(first) || first < 1) throw new Fault(`exit first=${first}; allowed: a whole number, 1 and more`);
  return { criterion, threshold, tolerance, first };
}

/** Follows the answers to one sequence from depth to depth. */
class Watch {
  constructor(rule, classifier) {
    if (classifier.kind === "regression" && rule.criterion !== "patience") {
      throw new Fault(`exit ${rule.criterion}: numbers have none; give patience, for example patience=2,tolerance=0.05`);
    }
    Object.assign(this, { rule, classifier, last: null, same: 0 });
  }

  isDone(depth, logits) {
    const { criterion, threshold, first } = this.rule;
    const isEnough = { patience: () => this.isSame(logits) >= threshold,
      confidence: () => this.certainty(logits) >= threshold,
      entropy: () => this.entropy(logits) <= threshold }[criterion]();
    return isEnough && depth >= first;
  }

  isSame(logits) {
    const answer = this.classifier.answer(logits);
    const gap = this.classifier.kind === "regression" ? this.rule.tolerance : 0;
    const isSame = this.last !== null && answer.every((value, i) => Math.abs(value - this.last[i]) <= gap);
    this.same = isSame ? this.same + 1 : 0;
    this.last = answer;
    return this.same;
  }

  certainty(logits) {
    const found = this.classifier.probabilities(logits);
    if (this.classifier.kind !== "multilabel") return Math.max(...found);
    return Math.min(...found.map((p) => (p >= this.classifier.threshold ? p : 1 - p)));
  }

  entropy(logits) {
    const found = this.classifier.probabilities(logits);
    if (this.classifier.kind !== "multilabel") {
      return found.reduce((sum, p) => sum + plogp(p), 0) / Math.log(found.length);
    }
    return Math.max(...found.map((p) => plogp(p) + plogp(1 - p))) / Math.log(2);
  }
}

function plogp(p) {
  return -p * Math.log(Math.max(p, 2.2250738585072014e-308));
}

/** Return what the head gives for each sequence, each as soon as the rule allows. */
export async function answersWithExits(graph, classifier, sequences, rule, depth) {
  if (!graph.hasStages || graph.head !== "sequence") {
    throw new Fault("the graph cannot stop between depths; export the folder again, with this version");
  }
  const last = depth ?? graph.depths;
  const answers = [];
  for (const sequence of sequences) {
    const watch = new Watch(rule, classifier);
    const [call] = packRows([sequence.ids.length], Infinity);
    let start = null;
    for (let end = 1; ; end += 1) {
      const [logits, state] = await graph.run(call, [sequence], ["logits", graph.stateName], { depth: end, start });
      const row = Array.from(logits.data);
      if (end === last || watch.isDone(end, classifier.logits(row))) {
        answers.push([row]);
        break;
      }
      start = [end, state.data];
    }
  }
  return answers;
}
