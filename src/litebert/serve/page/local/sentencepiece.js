// SentencePiece as ALBERT uses it: clean-up, the best pieces, the digit-comma rule, places in the text.
// The same as `litebert/text/spiece.py`, which explains each step.

import { SentenceNormalizer } from "./charsmap.js";
import { bytesOf, byteLength, CharacterMap, characters, CharacterSet, isBlank } from "./tables.js";

const BLANK = "\u2581";
const UNKNOWN_PENALTY = 10;
const NORMAL = "1";
const UNKNOWN = "2";
const USER_DEFINED = "4";
const UNUSED = "5";
const BYTE = "6";
const SMALLEST = 1.1754943508222875e-38; // of float32: where the search for the best score starts

/** Text to ids and places. */
export class SentencePiece {
  constructor(data) {
    this.pieces = data.pieces;
    this.kinds = data.kinds;
    const bytes = bytesOf(data.scores);
    this.scores = new Float32Array(bytes.buffer, 0, bytes.length >> 2);
    this.ids = new Map(data.pieces.map((piece, id) => [piece, id]));
    this.unknown = this.kinds.indexOf(UNKNOWN);
    this.hasBytes = data.byte_fallback;
    this.collapses = data.remove_space;
    this.table = new CharacterMap(data.characters);
    this.digits = new CharacterSet(data.digits);
    const symbols = this.pieces.filter((_, id) => this.kinds[id] === USER_DEFINED);
    this.normalizer = new SentenceNormalizer(data, symbols);
    this.prepare();
  }

  /** Every beginning of a piece (-1), and every piece (its id); scores of what has none of its own. */
  prepare() {
    this.starts = new Map();
    let [low, high] = [Infinity, SMALLEST];
    for (let id = 0; id < this.pieces.length; id += 1) {
      const kind = this.kinds[id];
      if (kind === NORMAL) {
        low = Math.min(low, this.scores[id]);
        high = Math.max(high, this.scores[id]);
      }
      if (kind !== NORMAL && kind !== USER_DEFINED && kind !== UNUSED) continue;
      let part = "";
      const piece = this.pieces[id];
      for (const character of piece) {
        part += character;
        if (part.length < piece.length && !this.starts.has(part)) this.starts.set(part, -1);
      }
      this.starts.set(piece, id);
    }
    this.highest = Math.fround(high);
    this.unknownScore = Math.fround(Math.fround(low) - UNKNOWN_PENALTY);
  }

  /** Ids and places of a text without special tokens. */
  encode(text) {
    const aligned = this.align(characters(text));
    const parts = this.cutCommas(aligned.text);
    return { ids: parts.map((part) => part.id), spans: () => this.spans(parts, aligned) };
  }

  /** The cleaned text, a list of characters, and where each begins and ends in the original. */
  align(given) {
    const text = [];
    const starts = [];
    const ends = [];
    let at = 0;
    let stop = given.length;
    if (this.collapses) {
      while (at < stop && isBlank(given[at])) at += 1;
      while (stop > at && isBlank(given[stop - 1])) stop -= 1;
    }
    while (at < stop) {
      const character = given[at];
      let end = at + 1;
      let result;
      if (this.collapses && isBlank(character)) {
        while (isBlank(given[end])) end += 1;
        result = [" "];
      } else if ((character === "`" || character === "'") && end < stop && given[end] === character) {
        end += 1;
        result = ['"'];
      } else {
        result = this.table.of(character);
      }
      for (const made of result) {
        text.push(made);
        starts.push(at);
        ends.push(end);
      }
      if (!result.length && ends.length && ends[ends.length - 1] === at) {
        const owner = starts[starts.length - 1];
        for (let place = ends.length - 1; place >= 0 && starts[place] === owner; place -= 1) ends[place] = end;
      }
      at = end;
    }
    return { text, starts, ends };
  }

  /** The pieces of cleaned text with the digit-comma rule: `25,` is `25` and `,`. */
  cutCommas(clean) {
    return this.cut(clean).flatMap((part) => (this.endsInComma(part.text) ? this.splitComma(part.text) : [part]));
  }

  endsInComma(text) {
    if (!text.endsWith(",")) return false;
    const all = characters(text);
    return all.length > 1 && this.digits.has(all[all.length - 2]);
  }

  splitComma(piece) {
    let parts = this.cut(characters(piece.slice(0, -1).replaceAll(BLANK, ""))).map((part) => part.text);
    if (!piece.startsWith(BLANK) && parts.length && parts[0].startsWith(BLANK)) {
      const bare = parts[0].slice(1);
      parts = [...(this.ids.has(bare) ? [bare] : characters(bare)), ...parts.slice(1)];
    }
    return [...parts, ","].map((text) => ({ text, id: this.ids.get(text) ?? this.unknown }));
  }

  /** The best pieces of cleaned text. Source: `EncodeOptimized` in google/sentencepiece. */
  cut(clean) {
    const { text } = this.normalizer.normalize(clean);
    const size = text.length;
    const scores = new Float32Array(size + 1);
    const origins = new Int32Array(size + 1).fill(-1);
    const ids = new Int32Array(size + 1);
    const offer = (end, from, id, exact) => {
      const score = Math.fround(exact); // as there: it decides between ways that are equally good
      if (origins[end] !== -1 && !(score > scores[end])) return;
      scores[end] = score;
      origins[end] = from;
      ids[end] = id;
    };
    for (let from = 0; from < size; from += 1) {
      const before = scores[from];
      let part = "";
      let length = 0;
      let isKnown = false;
      for (let end = from; end < size; end += 1) {
        part += text[end];
        length += byteLength(text[end].codePointAt(0));
        const id = this.starts.get(part);
        if (id === undefined) break;
        if (id < 0 || this.kinds[id] === UNUSED) continue;
        const own =
          this.kinds[id] === USER_DEFINED ? length * this.highest - 0.1 : this.scores[id];
        offer(end + 1, from, id, own + before);
        isKnown ||= end === from;
      }
      if (!isKnown) offer(from + 1, from, this.unknown, this.unknownScore + before);
    }
    const found = [];
    for (let end = size; end > 0; end = origins[end]) {
      found.push({ id: ids[end], text: text.slice(origins[end], end).join("") });
    }
    return this.joinUnknown(found.reverse());
  }

  /** Unknown pieces in a row are one, or the bytes of each where the model has those. */
  joinUnknown(found) {
    const result = [];
    let wasUnknown = false;
    for (const part of found) {
      const isUnknown = part.id === this.unknown;
      if (isUnknown && this.hasBytes) {
        for (const byte of new TextEncoder().encode(part.text)) {
          const name = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
          result.push({ id: this.ids.get(name) ?? this.unknown, text: name });
        }
      } else if (isUnknown && wasUnknown) {
        result[result.length - 1].text += part.text;
      } else {
        result.push(part);
      }
      wasUnknown = isUnknown;
    }
    return result;
  }

  /** Where each piece stands in the original, in characters. */
  spans(parts, aligned) {
    return matched(parts, aligned) ?? placed(parts.map((part) => this.visibleCount(part)), this.origins(aligned));
  }

  visibleCount(part) {
    if (part.id >= 0 && this.kinds[part.id] === BYTE) {
      return (Number.parseInt(part.text.slice(3, -1), 16) & 0xc0) === 0x80 ? 0 : 1;
    }
    return characters(part.text).filter((character) => character !== BLANK).length;
  }

  /** The original span of each character that SentencePiece sees and that is no blank. */
  origins(aligned) {
    const { text, back } = this.normalizer.normalize(aligned.text);
    const total = aligned.text.length;
    const found = [];
    let following = total;
    let position = back.length > text.length ? back[back.length - 1] : following;
    for (let i = text.length - 1; i >= 0; i -= 1) {
      if (back[i] < position) [following, position] = [position, back[i]];
      if (text[i] === BLANK || position >= aligned.starts.length) continue;
      let end = Math.min(Math.max(following, position + 1), total);
      while (end > position + 1 && isBlank(aligned.text[end - 1])) end -= 1;
      found.push([aligned.starts[position], aligned.ends[end - 1]]);
    }
    return found.reverse();
  }
}

/** Find the pieces one after the other, as they are, in the text; null if one is not there. */
function matched(parts, { text, starts, ends }) {
  const spans = [];
  let position = 0;
  let last = 0;
  let waiting = 0;
  for (const part of parts) {
    const visible = characters(part.text).filter((character) => character !== BLANK);
    if (!visible.length) {
      waiting += 1;
      continue;
    }
    while (position < text.length && isBlank(text[position])) position += 1;
    for (let i = 0; i < visible.length; i += 1) if (text[position + i] !== visible[i]) return null;
    const start = Math.max(starts[position], last);
    position += visible.length;
    for (; waiting; waiting -= 1) spans.push([start, start]);
    last = Math.max(ends[position - 1], start);
    spans.push([start, last]);
  }
  for (let i = position; i < text.length; i += 1) if (!isBlank(text[i])) return null;
  for (; waiting; waiting -= 1) spans.push([last, last]);
  return spans;
}

/** Give each piece the origins of its characters, each original character once. */
function placed(counts, origins) {
  const spans = [];
  let position = 0;
  let last = 0;
  for (const count of counts) {
    const own = origins.slice(position, position + count);
    position += count;
    if (own.length) {
      const start = Math.max(own[0][0], last);
      last = Math.max(own[own.length - 1][1], start);
      spans.push([start, last]);
    } else {
      last = Math.max(position < origins.length ? origins[position][0] : last, last);
      spans.push([last, last]);
    }
  }
  return spans;
}
