// What happens to single characters, as told by tables: the browser's own Unicode is another version.

const BLANKS = new Set([
  0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002,
  0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000,
]);

/** The characters of a text, a string for each code point; half a pair stands alone. */
export function characters(text) {
  return Array.from(text);
}

/** Whether a character is white space, as Python tells it. */
export function isBlank(character) {
  return BLANKS.has(character.codePointAt(0));
}

/** Whether a text has nothing but white space. */
export function isAllBlank(text) {
  for (const character of text) if (!isBlank(character)) return false;
  return true;
}

/** The words between white space, joined by single blanks. */
export function collapsed(text) {
  const words = [];
  let word = "";
  for (const character of text) {
    if (!isBlank(character)) word += character;
    else if (word) {
      words.push(word);
      word = "";
    }
  }
  if (word) words.push(word);
  return words.join(" ");
}

/** The bytes of base64. */
export function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Bytes that a code point has in UTF-8. */
export function byteLength(code) {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** Place of the range that holds a code point in `[first, last, first, last, ...]`, else -1. */
function findRange(flat, code) {
  let low = 0;
  let high = flat.length >> 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (flat[2 * middle + 1] < code) low = middle + 1;
    else high = middle;
  }
  return 2 * low < flat.length && flat[2 * low] <= code ? low : -1;
}

/** Some of the characters. */
export class CharacterSet {
  constructor(ranges) {
    this.ranges = ranges;
  }

  has(character) {
    return findRange(this.ranges, character.codePointAt(0)) >= 0;
  }
}

/** A letter for each character. */
export class CharacterMarks {
  constructor({ ranges, letters, usual }) {
    Object.assign(this, { ranges, letters, usual, known: new Map() });
  }

  of(character) {
    let letter = this.known.get(character);
    if (letter === undefined) {
      const place = findRange(this.ranges, character.codePointAt(0));
      letter = place < 0 ? this.usual : this.letters[place];
      this.known.set(character, letter);
    }
    return letter;
  }
}

/** What each character becomes. */
export class CharacterMap {
  constructor({ removed, spaced, hangul, map }) {
    this.removed = removed;
    this.spaced = spaced;
    this.hangul = hangul;
    this.map = new Map(Object.entries(map));
    this.known = new Map();
  }

  /** The characters that take the place of one, as a list. */
  of(character) {
    let found = this.known.get(character);
    if (found === undefined) {
      found = characters(this.convert(character));
      this.known.set(character, found);
    }
    return found;
  }

  convert(character) {
    const code = character.codePointAt(0);
    // Half a pair is no character: it becomes the one that stands for such faults.
    if (code >= 0xd800 && code < 0xe000) return this.convert("\ufffd");
    const other = this.map.get(character);
    if (other !== undefined) return other;
    if (this.hangul && code >= 0xac00 && code < 0xd7a4) return letters(code - 0xac00);
    if (findRange(this.removed, code) >= 0) return "";
    return findRange(this.spaced, code) >= 0 ? ` ${character} ` : character;
  }
}

function letters(place) {
  const last = place % 28;
  const first = String.fromCharCode(0x1100 + Math.floor(place / 588), 0x1161 + Math.floor((place % 588) / 28));
  return last ? first + String.fromCharCode(0x11a7 + last) : first;
}
