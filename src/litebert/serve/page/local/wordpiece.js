// WordPiece as BERT uses it: clean-up, words, the longest match from the left.
//
// Differs from `tokenizers`: marks that stay are not put into canonical order, which concerns two marks in
// a row that are no accents, in the wrong order.

import { CharacterMap, CharacterMarks, characters, isBlank } from "./tables.js";

/** Text to ids and places. */
export class WordPiece {
  constructor(data) {
    this.pieces = data.pieces;
    this.ids = new Map(data.pieces.map((piece, id) => [piece, id]));
    this.unknown = data.special_ids[data.special.unk];
    this.prefix = data.prefix;
    this.longestWord = data.longest_word;
    this.table = new CharacterMap(data.characters);
    this.marks = new CharacterMarks(data.marks);
    this.longestPiece = data.pieces.reduce((most, piece) => Math.max(most, piece.length), 0);
  }

  /** Ids and places of a text without special tokens. */
  encode(text) {
    const given = characters(text);
    const ids = [];
    const spans = [];
    for (const word of this.words(given)) this.cut(word, ids, spans);
    return { ids, spans: () => clipped(spans, given) };
  }

  /** The words of a text: cleaned characters, each with the place it is from. */
  words(given) {
    const words = [];
    let word = { text: [], from: [] };
    const close = () => {
      if (word.text.length) words.push(word);
      word = { text: [], from: [] };
    };
    for (let place = 0; place < given.length; place += 1) {
      for (const character of this.table.of(given[place])) {
        const mark = this.marks.of(character);
        if (mark !== "w") close();
        if (mark === " ") continue;
        word.text.push(character);
        word.from.push(place);
        if (mark === "p") close();
      }
    }
    close();
    return words;
  }

  /** Add the pieces of a word; one unknown piece where a part is in no vocabulary. */
  cut(word, ids, spans) {
    const size = word.text.length;
    const found = [];
    for (let start = 0; start < size && size <= this.longestWord; ) {
      let end = Math.min(size, start + this.longestPiece);
      let id;
      for (; end > start; end -= 1) {
        id = this.ids.get((start ? this.prefix : "") + word.text.slice(start, end).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) break;
      found.push([id, start, end]);
      start = end;
    }
    if (!found.length || found[found.length - 1][2] < size) found.splice(0, Infinity, [this.unknown, 0, size]);
    for (const [id, start, end] of found) {
      ids.push(id);
      spans.push([word.from[start], word.from[end - 1] + 1]);
    }
  }
}

/** Each original character at most once, and none that is white space in front. */
function clipped(spans, given) {
  let last = 0;
  return spans.map(([first, end]) => {
    let start = first;
    while (start < end && isBlank(given[start])) start += 1;
    start = Math.max(start, last);
    last = Math.max(end, start);
    return [start, last];
  });
}
