// Tags of words: the best sequence that the scheme allows, and entities; as `litebert/tasks/tag_decoding.py`.

import { argmax } from "./numbers.js";

const PREFIXES = { iob2: "BI", iobes: "BIES" };

/** The tags of some entity types: O, then those of each type in turn. */
export class TagSet {
  constructor(types, scheme) {
    const marks = [...PREFIXES[scheme]];
    this.types = types;
    this.scheme = scheme;
    this.width = marks.length;
    this.names = ["O", ...types.flatMap((type) => marks.map((mark) => `${mark}-${type}`))];
    this.size = this.names.length;
    this.kinds = this.names.map((_, tag) => (tag ? Math.floor((tag - 1) / this.width) : -1));
    this.isNew = this.names.map((name) => "OBS".includes(name[0]));
    this.mayEnd = this.names.map((name) => (scheme === "iob2" ? "OBI" : "OES").includes(name[0]));
    this.isOpen = this.names.map((name) => "BI".includes(name[0]));
  }

  /** Whether a tag may follow another one. */
  follows(before, after) {
    if (this.isNew[after]) return this.mayEnd[before];
    return this.isOpen[before] && this.kinds[before] === this.kinds[after];
  }

  isValid(tags) {
    if (!tags.length) return true;
    return (
      this.isNew[tags[0]] &&
      this.mayEnd[tags[tags.length - 1]] &&
      tags.slice(1).every((tag, i) => this.follows(tags[i], tag))
    );
  }

  /** The best tags for rows of logits, one row a word. */
  decode(rows, isConstrained) {
    const best = rows.map((row) => argmax(row.slice(0, this.size)));
    return !isConstrained || this.isValid(best) ? best : this.viterbi(rows);
  }

  viterbi(rows) {
    const ends = this.names.map((_, tag) => tag).filter((tag) => this.mayEnd[tag]);
    let scores = rows[0].slice(0, this.size).map((value, tag) => (this.isNew[tag] ? value : -Infinity));
    const back = [];
    const bestEnd = () => ends[argmax(ends.map((tag) => scores[tag]))];
    for (const row of rows.slice(1)) {
      const choice = bestEnd();
      const from = this.names.map((_, tag) => {
        if (this.isNew[tag]) return choice;
        const first = 1 + this.kinds[tag] * this.width; // B- of the type; I- is next to it
        return scores[first + 1] > scores[first] ? first + 1 : first;
      });
      scores = from.map((before, tag) => scores[before] + row[tag]);
      back.push(from);
    }
    let tag = bestEnd();
    const path = [tag];
    for (const from of back.reverse()) {
      tag = from[tag];
      path.push(tag);
    }
    return path.reverse();
  }

  /** `[first word, last word + 1, type]` of each entity; what goes on from nothing begins. */
  entities(tags) {
    const found = [];
    let start = 0;
    let current = -1;
    [...tags, 0].forEach((tag, position) => {
      const kind = this.kinds[tag];
      if (current >= 0 && (kind !== current || this.isNew[tag])) {
        found.push([start, position, this.types[current]]);
        current = -1;
      }
      if (kind >= 0 && current < 0) [start, current] = [position, kind];
      if (current >= 0 && this.scheme === "iobes" && this.mayEnd[tag]) {
        found.push([start, position + 1, this.types[current]]);
        current = -1;
      }
    });
    return found;
  }
}
