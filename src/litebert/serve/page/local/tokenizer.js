// Texts become `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`; the same as `litebert/text/tokenizer.py`.

import { characters } from "./tables.js";
import { SentencePiece } from "./sentencepiece.js";
import { WordPiece } from "./wordpiece.js";

/** Characters that are looked at for each token that may stay. */
export const CHARACTERS_PER_TOKEN = 250;

const KINDS = { sentencepiece: SentencePiece, wordpiece: WordPiece };

/** The tokenizer of the model. */
export class Tokenizer {
  constructor(data) {
    const Kind = KINDS[data.kind];
    if (data.format_version !== 1 || !Kind) throw new Error("the tokenizer is of another version; export the model again");
    this.model = new Kind(data);
    this.data = data;
    this.specialIds = new Map(Object.entries(data.special_ids));
    const words = [...this.specialIds.keys()].sort((a, b) => b.length - a.length);
    this.pattern = new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
    for (const name of ["pad", "unk", "cls", "sep", "mask"]) this[`${name}Id`] = data.special_ids[data.special[name]];
    this.maskWord = data.special.mask;
    this.size = data.pieces.length;
  }

  /** The vocabulary entry of an id. */
  token(id) {
    return this.data.pieces[id];
  }

  /** Ids and places of a text; special tokens that it spells out are those tokens. */
  pieces(text) {
    const parts = [];
    let start = 0; // characters
    for (const part of this.split(text)) {
      const special = this.specialIds.get(part);
      const length = characters(part).length;
      const found =
        special === undefined ? this.model.encode(part) : { ids: [special], spans: () => [[0, length]] };
      parts.push({ start, found });
      start += length;
    }
    return {
      ids: parts.flatMap(({ found }) => found.ids),
      spans: () => parts.flatMap((part) => part.found.spans().map(([a, b]) => [a + part.start, b + part.start])),
    };
  }

  split(text) {
    const parts = [];
    let position = 0;
    for (const match of text.matchAll(this.pattern)) {
      if (match.index > position) parts.push(text.slice(position, match.index));
      parts.push(match[0]);
      position = match.index + match[0].length;
    }
    if (position < text.length) parts.push(text.slice(position));
    return parts;
  }

  /**
   * Encode a text, or a pair where `pair` is not null.
   * `maxLength` counts special tokens; null keeps everything. `keep` says which end of a cut text stays.
   */
  encode(text, pair = null, maxLength = null, keep = "head") {
    const texts = pair === null ? [text] : [text, pair];
    const parts = texts.map((item) => this.part(item, maxLength, keep));
    const counts = parts.map((part) => part.ids.length);
    const kept = maxLength === null ? counts : keptCounts(counts, maxLength);
    const ids = [this.clsId];
    const types = [0];
    const special = [true];
    const places = [];
    let truncated = 0;
    parts.forEach((part, number) => {
      const start = keep === "head" ? 0 : counts[number] - kept[number];
      for (let i = 0; i <= kept[number]; i += 1) {
        const isEnd = i === kept[number];
        ids.push(isEnd ? this.sepId : part.ids[start + i]);
        types.push(number);
        special.push(isEnd);
      }
      places.push([part, start, start + kept[number]]);
      truncated += counts[number] - kept[number] + (part.isCut ? 1 : 0);
    });
    const spans = () => [
      [0, 0],
      ...places.flatMap(([part, start, stop]) => [...part.spans().slice(start, stop), [0, 0]]),
    ];
    return { ids, types, special, truncated, spans };
  }

  /** The pieces of a text of which characters that cannot matter are not looked at. */
  part(text, maxLength, keep) {
    if (maxLength === null || text.length <= maxLength * CHARACTERS_PER_TOKEN) {
      return { ...this.pieces(text), isCut: false };
    }
    const given = characters(text);
    const limit = Math.max(maxLength, 1) * CHARACTERS_PER_TOKEN;
    if (given.length <= limit) return { ...this.pieces(text), isCut: false };
    const base = keep === "tail" ? given.length - limit : 0;
    const found = this.pieces(given.slice(base, base + limit).join(""));
    const spans = () => found.spans().map(([start, end]) => [start + base, end + base]);
    return { ids: found.ids, spans, isCut: true };
  }
}

/** Pieces of each text that stay: one by one the longer text gives way, the second if both are as long. */
function keptCounts(counts, maxLength) {
  const room = maxLength - 1 - counts.length;
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= room) return counts;
  if (counts.length === 1) return [room];
  const first = Math.min(counts[0], Math.max(room - counts[1], (room + 1) >> 1));
  return [first, room - first];
}
