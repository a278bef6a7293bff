// Answers from passages: windows over them, and the best spans; as `litebert/tasks/span_windows.py` and
// `span_decode.py`.

import { order, sigmoid } from "./numbers.js";
import { characters, isBlank } from "./tables.js";
import { Fault, requireFinite } from "./faults.js";

const END_BEAM = 5;
const USABLE = -1e29;
const [START_COLUMN, RANK_COLUMN, END_COLUMN, CLASS_COLUMN] = [0, 1, 2, 7];
const ALTERNATIVES = 2;

/** Answers a task of single questions. */
export class Reader {
  constructor(task, tokenizer) {
    this.tokenizer = tokenizer;
    this.isJoint = task.task === "squad_v2";
    this.maxLength = task.max_length ?? 384;
    this.maxQuery = task.max_query_length ?? 64;
    this.stride = task.doc_stride ?? 128;
    this.longest = task.max_answer_length ?? 30;
    this.best = task.n_best ?? 20;
    this.nullThreshold = task.null_threshold ?? 0.5;
  }

  /** The windows of a question over its passage. */
  prepare({ question, context }) {
    const { clsId, sepId } = this.tokenizer;
    const passage = this.tokenizer.pieces(context);
    const head = [clsId, ...this.tokenizer.pieces(question).ids.slice(0, this.maxQuery), sepId];
    const room = this.maxLength - head.length - 1;
    const windows = cutWindows(passage.ids.length, room, this.stride).map(({ start, stop, isBest }) => {
      const ids = [...head, ...passage.ids.slice(start, stop), sepId];
      return { ids, types: ids.map((_, i) => (i < head.length ? 0 : 1)), start, stop, isBest, offset: head.length };
    });
    return { text: characters(context), spans: passage.spans(), windows };
  }

  /** The answer to a question from the rows of its windows. */
  answer(prepared, outputs) {
    const width = this.isJoint ? CLASS_COLUMN + 1 : 2;
    if (outputs.some((rows) => rows[0].length !== width)) {
      throw new Fault("the model and its task do not belong together; export the model again", 500);
    }
    outputs.forEach(requireFinite);
    const found = this.spans(prepared, outputs);
    if (!this.isJoint) return found.length ? told(found, 1) : { text: "", score: 0, start: 0, end: 0, others: [] };
    const logit = Math.min(...outputs.map((rows) => rows[0][CLASS_COLUMN]));
    const none = logit > -700 ? sigmoid(logit) : 0;
    const answer = none > this.nullThreshold || !found.length
      ? { text: "", score: none, start: 0, end: 0, others: [] }
      : told(found, 1 - none);
    return { ...answer, none };
  }

  /** Different answers, best first. */
  spans(prepared, outputs) {
    const each = this.isJoint ? jointSpans : independentSpans;
    const find = (way) => prepared.windows.flatMap((window, i) => way(window, outputs[i], this));
    const found = this.different(prepared, find(each));
    return found.length || this.isJoint ? found : this.different(prepared, find(everySpan));
  }

  different({ text, spans }, candidates) {
    const totals = candidates.map(({ start, end }) => start + end);
    const seen = new Map();
    for (const i of order(totals)) {
      let [from, to] = [spans[candidates[i].first][0], spans[candidates[i].last][1]];
      while (from < to && isBlank(text[from])) from += 1;
      while (to > from && isBlank(text[to - 1])) to -= 1;
      const part = text.slice(from, to).join("");
      if (!part || seen.has(part)) continue;
      seen.set(part, { text: part, start: from, end: to, total: totals[i] });
      if (seen.size === this.best) break;
    }
    const found = [...seen.values()];
    const most = Math.max(...found.map(({ total }) => total));
    const weights = found.map(({ total }) => Math.exp(total - most));
    const sum = weights.reduce((a, b) => a + b, 0);
    return found.map((span, i) => ({ ...span, probability: weights[i] / sum }));
  }

  /** The body of the answer to one question; a list of `top` answers where that is told. */
  body(prepared, outputs, top) {
    const { text, score, start, end, others, none } = this.answer(prepared, outputs);
    const first = { answer: text, score, start, end };
    if (none !== undefined) first.null_probability = none;
    return top === null ? first : [first, ...others].slice(0, top);
  }
}

function told(found, weight) {
  const [best, ...rest] = found;
  const others = rest.slice(0, ALTERNATIVES).map(({ text, probability, start, end }) => (
    { answer: text, score: weight * probability, start, end }));
  return { text: best.text, score: weight * best.probability, start: best.start, end: best.end, others };
}

/** Start and stop of the windows over pieces, and where each shows a piece with the most context of all. */
function cutWindows(total, room, stride) {
  const bounds = [];
  for (let start = 0; ; start += Math.min(room, stride)) {
    const stop = Math.min(start + room, total);
    bounds.push([start, stop]);
    if (stop === total) break;
  }
  if (bounds.length === 1) return [{ start: 0, stop: total, isBest: null }];
  const best = new Float64Array(total).fill(-Infinity);
  const owner = new Int32Array(total);
  bounds.forEach(([start, stop], number) => {
    for (let piece = start; piece < stop; piece += 1) {
      const score = Math.min(piece - start, stop - 1 - piece) + 0.01 * (stop - start);
      if (score > best[piece]) [best[piece], owner[piece]] = [score, number];
    }
  });
  return bounds.map(([start, stop], number) => ({ start, stop, isBest: (piece) => owner[piece] === number }));
}

/** A candidate, if it may be an answer: pieces of the passage, and the scores of start and end. */
function candidate(window, first, last, start, end, { longest }) {
  const size = window.stop - window.start;
  if (first < 0 || last >= size || last < first || last - first >= longest) return [];
  if (window.isBest && !window.isBest(window.start + first)) return [];
  return [{ first: window.start + first, last: window.start + last, start, end }];
}

function independentSpans(window, rows, reader) {
  const starts = rows.map((row) => row[0]);
  const ends = rows.map((row) => row[1]);
  const bestEnds = order(ends).slice(0, reader.best);
  return order(starts).slice(0, reader.best).flatMap((first) => bestEnds.flatMap((last) => (
    candidate(window, first - window.offset, last - window.offset, starts[first], ends[last], reader))));
}

function everySpan(window, rows, reader) {
  const found = [];
  const size = window.stop - window.start;
  for (let first = 0; first < size; first += 1) {
    for (let last = first; last < Math.min(size, first + reader.longest); last += 1) {
      const [start, end] = [rows[first + window.offset][0], rows[last + window.offset][1]];
      found.push(...candidate(window, first, last, start, end, reader));
    }
  }
  return found;
}

function jointSpans(window, rows, reader) {
  const places = rows.map((_, place) => place).filter((place) => rows[place][RANK_COLUMN] >= 0);
  places.sort((a, b) => rows[a][RANK_COLUMN] - rows[b][RANK_COLUMN] || a - b);
  return places.flatMap((place) => {
    const column = END_COLUMN + Math.trunc(rows[place][RANK_COLUMN]);
    const ends = rows.map((row) => row[column]);
    const best = order(ends).slice(0, END_BEAM).filter((last) => ends[last] > USABLE);
    return best.flatMap((last) => candidate(
      window, place - window.offset, last - window.offset, rows[place][START_COLUMN], ends[last], reader));
  });
}
