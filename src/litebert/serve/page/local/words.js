// Where words begin in a text, for any script; the same as `litebert/text/words.py`.

import { CharacterMarks, characters, isBlank } from "./tables.js";

const WORD = /[wd][wdej]*(?:(?:(?<=w)q(?=w)|(?<=d)p(?=d))[wdej]*)*|h[hej]*|k[kej]*|[sqp][ej]*(?:(?<=j)[^ ][ej]*)*|[ej]+/g;
const ZERO_WIDTH_SPACE = "\u200b";

/** Return what splits a text into words: `[start, end]` of each, in characters. */
export function wordSplitter(table) {
  const marks = new CharacterMarks(table);
  return (text) => {
    const given = characters(text);
    const kinds = given.map((character) => marks.of(character)).join("");
    const starts = Array.from(kinds.matchAll(WORD), (match) => match.index);
    return starts.map((start, number) => {
      let stop = starts[number + 1] ?? given.length;
      while (isBlank(given[stop - 1]) || given[stop - 1] === ZERO_WIDTH_SPACE) stop -= 1;
      return [start, stop];
    });
  };
}
