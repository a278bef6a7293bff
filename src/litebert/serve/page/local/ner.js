// Entities of texts, and intents with slots; as `litebert/tasks/tagging.py`, `tag_windows.py`, `joint_tagging.py`.

import { argmax, meanRows, search, softmax } from "./numbers.js";
import { characters, isAllBlank } from "./tables.js";
import { Fault, requireFinite } from "./faults.js";
import { TagSet } from "./tags.js";
import { wordSplitter } from "./words.js";

/** Answers a tagging task. */
export class Tagger {
  constructor(task, tokenizer) {
    this.task = task;
    this.tokenizer = tokenizer;
    this.split = wordSplitter(tokenizer.data.words);
    this.tags = new TagSet(task.types, task.scheme ?? "iob2");
    this.isConstrained = task.constrained ?? true;
    this.room = (task.max_length ?? 128) - 2;
    this.stride = task.stride ?? Math.max(1, Math.floor(this.room / 2));
  }

  /** The windows of a text, and which words each answers for. */
  prepare(text) {
    const places = isAllBlank(text) ? [] : this.split(text);
    if (!places.length) throw new Fault("the text is empty; give one with a word in it");
    const { ids, spans } = this.tokenizer.pieces(text);
    const words = matchPieces(places, spans());
    const bounds = [];
    for (let start = 0; ; start += this.stride) {
      const stop = Math.min(start + this.room, ids.length);
      bounds.push([start, stop]);
      if (stop === ids.length) break;
    }
    const owners = ownersOf(words, bounds, ids.length);
    const { clsId, sepId } = this.tokenizer;
    return {
      text: characters(text),
      words,
      windows: bounds.map(([start, stop], number) => ({
        ids: [clsId, ...ids.slice(start, stop), sepId],
        types: new Array(stop - start + 2).fill(0),
        chosen: words.flatMap((_, word) => (owners[word] === number ? [word] : [])),
        start,
      })),
    };
  }

  /** The answer to a text from the rows of its windows. */
  answer({ text, words, windows }, outputs) {
    const width = this.tags.size + (this.task.intents?.length ?? 0);
    if (outputs.some((rows) => rows[0].length !== width)) {
      throw new Fault("the model and its task do not belong together; export the model again", 500);
    }
    outputs.forEach(requireFinite);
    const rows = new Array(words.length);
    windows.forEach(({ chosen, start }, number) => {
      for (const word of chosen) rows[word] = outputs[number][words[word].first - start + 1].slice(0, this.tags.size);
    });
    const tags = rows.length ? this.tags.decode(rows, this.isConstrained) : [];
    const sure = tags.map((tag, word) => softmax(rows[word])[tag]);
    const entities = this.tags.entities(tags).map(([first, stop, label]) => {
      const [start, end] = [words[first].start, words[stop - 1].end];
      const own = sure.slice(first, stop);
      const score = own.reduce((sum, value) => sum + value, 0) / own.length;
      return { start, end, label, text: text.slice(start, end).join(""), score };
    });
    return { entities, certainty: Math.min(1, ...sure) };
  }

  /** The body of the answer to one text. */
  body(prepared, outputs) {
    const { entities, certainty } = this.answer(prepared, outputs);
    if (this.task.intents) {
      const logits = meanRows(outputs.map((rows) => rows[0].slice(this.tags.size)));
      const found = softmax(logits);
      const best = argmax(found);
      return { intent: this.task.intents[best], slots: entities, score: Math.min(found[best], certainty) };
    }
    return entities.map(({ start, end, label, text, score }) => ({ entity_group: label, score, word: text, start, end }));
  }
}

/** The words that have a piece of their own: characters, first piece, last piece before the next word. */
function matchPieces(places, spans) {
  const filled = spans.flatMap(([start, end], piece) => (end > start ? [piece] : []));
  const ends = filled.map((piece) => spans[piece][1]);
  const words = [];
  for (const [start, end] of places) {
    const found = search(ends, start, true);
    if (found === filled.length || spans[filled[found]][0] >= end) continue; // it has no piece
    const first = filled[found];
    const before = words[words.length - 1];
    if (before?.first === first) before.end = end; // several words in one piece are one
    else words.push({ start, end, first, last: first });
  }
  words.forEach((word, i) => { word.last = (words[i + 1]?.first ?? spans.length) - 1; });
  return words;
}

/** The window of each word: where its nearer side has most pieces beside it. */
function ownersOf(words, bounds, total) {
  return words.map(({ first, last }) => {
    let owner = 0;
    let best = -Infinity;
    bounds.forEach(([start, stop], number) => {
      if (first < start || first >= stop) return;
      const before = start ? first - start : Infinity;
      const after = stop < total ? stop - 1 - last : Infinity;
      const context = Math.min(before, after);
      if (context > best) [owner, best] = [number, context];
    });
    return owner;
  });
}
