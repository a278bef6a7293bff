// Questions with choices: a sequence for each choice, the highest score is the answer; as `litebert/tasks/choice.py`.

import { argmax, softmax } from "./numbers.js";
import { collapsed, isAllBlank } from "./tables.js";
import { Fault, requireFinite } from "./faults.js";

const ANSWER_LENGTH = 128;
const SPECIAL_TOKENS = 3;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const BLANK = /(?<![\p{L}\p{N}])_+|_+(?![\p{L}\p{N}])/gu; // underscores that do not stand inside a word

/** Answers a task of choices. */
export class Chooser {
  constructor(task, tokenizer) {
    this.tokenizer = tokenizer;
    this.room = (task.max_length ?? 512) - SPECIAL_TOKENS;
    this.kept = task.max_answer_length ?? Math.min(ANSWER_LENGTH, this.room);
    this.fillsBlanks = task.fill_blanks ?? true;
    this.temperature = task.temperature ?? 1;
  }

  /** The sequences of a question, one for each choice. */
  prepare({ question, context, choices }) {
    if (isAllBlank(question) && isAllBlank(context)) {
      throw new Fault("question: question and context are both empty; a question needs words");
    }
    choices.forEach((choice, number) => {
      if (isAllBlank(choice)) throw new Fault(`choices: choice ${LETTERS[number]}: is empty; give every choice a text, or leave the choice out`);
    });
    const { first, keep, seconds } = this.texts(question, context, choices);
    const before = this.ids(first, this.room + 2, keep);
    const { clsId, sepId } = this.tokenizer;
    const windows = seconds.map((text) => {
      const after = this.ids(text, this.kept + 2, "tail");
      const cut = Math.min(before.length, this.room - after.length);
      const part = keep === "head" ? before.slice(0, cut) : before.slice(before.length - cut);
      const ids = [clsId, ...part, sepId, ...after, sepId];
      return { ids, types: ids.map((_, i) => (i < cut + 2 ? 0 : 1)) };
    });
    return { choices, windows };
  }

  ids(text, maxLength, keep) {
    return this.tokenizer.encode(text, null, maxLength, keep).ids.slice(1, -1);
  }

  texts(question, context, choices) {
    const asked = collapsed(question);
    const given = choices.map(collapsed);
    const hasPassage = !isAllBlank(context);
    const first = hasPassage ? context : "";
    if (this.fillsBlanks && asked.search(BLANK) >= 0) {
      return { first, keep: "head", seconds: given.map((choice) => asked.replace(BLANK, () => choice)) };
    }
    if (hasPassage) return { first, keep: "head", seconds: given.map((choice) => `${asked} ${choice}`) };
    return { first: asked, keep: "tail", seconds: given };
  }

  body({ choices }, outputs) {
    const row = outputs.map(([[logit]]) => logit);
    requireFinite([row]);
    const found = softmax(row.map((logit) => logit / this.temperature));
    const best = argmax(found);
    return {
      choice: choices[best],
      score: found[best],
      index: best,
      letter: LETTERS[best],
      probabilities: found.map((value) => Number(value.toFixed(6))),
    };
  }
}
