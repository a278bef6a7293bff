// SentencePiece's own clean-up: the longest known stretch of the text becomes what the model says.
//
// The map of a model file is a table of 4-byte units (a double-array trie over UTF-8) and the texts that
// take the place of what is found. Source: `normalizer.cc` of google/sentencepiece, darts-clone.

import { bytesOf, byteLength, characters } from "./tables.js";

const BLANK = "\u2581";

/** The compiled rules of a model. */
class Trie {
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const size = view.getUint32(0, true);
    this.units = new Uint32Array(size / 4);
    for (let i = 0; i < this.units.length; i += 1) this.units[i] = view.getUint32(4 + 4 * i, true);
    this.texts = bytes.subarray(4 + size);
    this.known = new Map();
  }

  /** Bytes of the longest rule that the text has from a place on, and its result; null: none. */
  longest(bytes, start) {
    let unit = this.units[0];
    let node = offsetOf(unit);
    let found = null;
    for (let place = start; place < bytes.length; place += 1) {
      node ^= bytes[place];
      unit = this.units[node];
      if (unit === undefined || (unit & 0x800000ff) >>> 0 !== bytes[place]) break;
      node ^= offsetOf(unit);
      if ((unit >>> 8) & 1) found = { length: place + 1 - start, value: this.units[node] & 0x7fffffff };
    }
    return found;
  }

  text(value) {
    let text = this.known.get(value);
    if (text === undefined) {
      text = characters(new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.texts.subarray(value, this.texts.indexOf(0, value))));
      this.known.set(value, text);
    }
    return text;
  }
}

function offsetOf(unit) {
  return ((unit >>> 10) << ((unit & 0x200) >>> 6)) >>> 0;
}

/** Turns text into what the pieces are looked for in. */
export class SentenceNormalizer {
  constructor({ charsmap, add_dummy_prefix, remove_extra_whitespaces }, symbols) {
    this.trie = charsmap ? new Trie(bytesOf(charsmap)) : null;
    this.hasPrefix = add_dummy_prefix;
    this.trims = remove_extra_whitespaces;
    this.symbols = new Set(symbols);
    this.longestSymbol = Math.max(0, ...symbols.map((symbol) => characters(symbol).length));
  }

  /**
   * Normalise a list of characters.
   * Returns `text`, a list of characters with the mark for blanks, and `back`: where each is from, and
   * one place more for the end.
   */
  normalize(given) {
    const bytes = new TextEncoder().encode(given.join(""));
    const text = [];
    const back = [];
    let at = 0; // character
    let byte = 0;
    const step = () => {
      const found = this.prefix(given, at, bytes, byte);
      const from = at;
      for (let end = byte + found.bytes; byte < end; at += 1) byte += byteLength(given[at].codePointAt(0));
      return { result: found.result, from };
    };
    if (this.trims) {
      while (at < given.length) {
        const [before, place] = [at, byte];
        const { result } = step();
        if (result.length === 1 && result[0] === " ") continue;
        [at, byte] = [before, place];
        break;
      }
    }
    if (at === given.length) return { text, back: [] };
    if (this.hasPrefix) {
      text.push(BLANK);
      back.push(at);
    }
    let isAfterBlank = this.trims;
    while (at < given.length) {
      const { result, from } = step();
      let first = 0;
      while (isAfterBlank && result[first] === " ") first += 1;
      for (let i = first; i < result.length; i += 1) {
        text.push(result[i] === " " ? BLANK : result[i]);
        back.push(from);
      }
      if (first < result.length) isAfterBlank = result[result.length - 1] === " ";
      if (!this.trims) isAfterBlank = false;
    }
    let end = at;
    while (this.trims && text.length && text[text.length - 1] === BLANK) {
      text.pop();
      end = back.pop();
    }
    back.push(end);
    return { text, back };
  }

  /** What the text becomes from a place on, and how many bytes of it. */
  prefix(given, at, bytes, byte) {
    for (let length = Math.min(this.longestSymbol, given.length - at); length > 0; length -= 1) {
      const part = given.slice(at, at + length);
      if (this.symbols.has(part.join(""))) {
        return { result: part, bytes: part.reduce((sum, c) => sum + byteLength(c.codePointAt(0)), 0) };
      }
    }
    const found = this.trie?.longest(bytes, byte);
    if (found) return { result: this.trie.text(found.value), bytes: found.length };
    return { result: [given[at]], bytes: byteLength(given[at].codePointAt(0)) };
  }
}
