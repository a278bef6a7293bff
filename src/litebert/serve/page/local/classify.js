// Labels and numbers for texts; the same as `litebert/tasks/classification.py` and `long_texts.py`.

import { argmax, meanRows, order, sigmoid, softmax, unit } from "./numbers.js";
import { CHARACTERS_PER_TOKEN } from "./tokenizer.js";
import { characters } from "./tables.js";
import { Fault, requireFinite } from "./faults.js";

const MOST_WINDOWS = 256;

/** Reads the logits of a task. */
export class Classifier {
  constructor(task) {
    this.task = task;
    this.kind = task.kind;
    this.labels = task.labels ?? [];
    this.names = this.labels.length ? this.labels : [task.label_column ?? "score"];
    this.isPair = (task.text_columns ?? ["text"]).length === 2;
    this.maxLength = task.max_length ?? 128;
    this.threshold = task.threshold ?? 0.5;
    this.temperature = task.temperature ?? 1;
    this.scale = task.target_scale ?? 1;
    this.mean = task.target_mean ?? 0;
  }

  /** What the head gives becomes logits: as it is, or by the weights that the task keeps itself. */
  logits(row) {
    const { weights, biases } = this.task;
    let found = row;
    if (weights && row.length === weights[0].length) {
      const vector = unit(row);
      found = weights.map((own, i) => own.reduce((sum, weight, j) => sum + weight * vector[j], biases[i]));
    }
    if (found.length !== this.names.length) {
      throw new Fault("the model and its task do not belong together; export the model again", 500);
    }
    requireFinite([found]);
    return found;
  }

  probabilities(logits) {
    const scaled = Array.from(logits, (value) => value / this.temperature);
    return this.kind === "multilabel" ? scaled.map(sigmoid) : softmax(scaled);
  }

  value(logits) {
    return logits[0] * this.scale + this.mean;
  }

  /** Labels with probabilities, best first; a number has the name of its column. */
  scores(logits) {
    if (this.kind === "regression") return [{ label: this.names[0], score: this.value(logits) }];
    const found = this.probabilities(logits);
    return order(found).map((i) => ({ label: this.labels[i], score: found[i] }));
  }

  raw(logits) {
    return order(logits).map((i) => ({ label: this.names[i], score: logits[i] }));
  }

  /** Class, 0/1 of each label, or the number in standard deviations: what patience compares. */
  answer(logits) {
    if (this.kind === "regression") return [(this.value(logits) - this.mean) / this.scale];
    const found = this.probabilities(logits);
    if (this.kind === "multilabel") return found.map((p) => (p >= this.threshold ? 1 : 0));
    return [argmax(found)];
  }

  /** The sequences of a text or pair: one, or the windows of a long one. */
  windows(tokenizer, first, second) {
    if ((second !== null) !== this.isPair) {
      const [got, remedy] = second === null
        ? ["one text", "give the second text too"]
        : ["a pair of texts", "leave the second text out"];
      throw new Fault(`got ${got}, but the model was trained on ${(this.task.text_columns ?? ["text"]).join(" + ")}; ${remedy}`);
    }
    const whole = tokenizer.encode(first, second, this.maxLength);
    const seen = this.maxLength * CHARACTERS_PER_TOKEN;
    const given = second === null ? [first] : [first, second];
    const { stride } = this.task;
    const fits = whole.ids.length < this.maxLength && given.every((text) => characters(text).length <= seen);
    if (!stride || fits) return [whole];
    return this.slide(tokenizer, given, stride);
  }

  slide(tokenizer, given, stride) {
    const texts = given.map((text) => tokenizer.pieces(text).ids);
    let room = this.maxLength - 1 - texts.length;
    const moving = texts.length === 1 || texts[0].length > texts[1].length ? 0 : 1;
    const long = texts[moving];
    if (texts.length === 2) {
      const still = texts[1 - moving].slice(0, Math.max(room >> 1, room - long.length));
      texts[1 - moving] = still;
      room -= still.length;
    }
    return windowStarts(long.length, room, Math.min(stride, room)).map((start) => {
      texts[moving] = long.slice(start, start + room);
      const ids = [tokenizer.clsId];
      const types = [0];
      texts.forEach((text, segment) => {
        ids.push(...text, tokenizer.sepId);
        for (let i = 0; i <= text.length; i += 1) types.push(segment);
      });
      return { ids, types };
    });
  }
}

/** First piece of each window; the last window ends with the text. */
export function windowStarts(total, room, stride) {
  if (total <= room) return [0];
  const last = total - room;
  const count = 1 + Math.ceil(last / stride);
  if (count <= MOST_WINDOWS) return Array.from({ length: count }, (_, i) => Math.min(i * stride, last));
  return Array.from({ length: MOST_WINDOWS }, (_, i) => halfEven((i * last) / (MOST_WINDOWS - 1)));
}

function halfEven(value) {
  const below = Math.floor(value);
  if (value - below !== 0.5) return Math.round(value);
  return below % 2 ? below + 1 : below;
}

/** The logits of a text from those of its windows. */
export function gathered(rows) {
  return meanRows(rows);
}
