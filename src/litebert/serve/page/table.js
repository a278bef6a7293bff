// A table that came as CSV: which row names the columns, and which column is meant by what.

const NAMES = /^(text|sentence|review|content|title|label|id|query|question|context|passage|document|premise|hypothesis|utterance|class|category|score)s?[ _-]?\w{0,3}$/i;

/** Whether the first row looks like names of columns. */
export function hasHeader(rows) {
  const first = rows[0] ?? [];
  if (rows.length < 2) return false;
  if (first.length === 1) return NAMES.test(first[0].trim());
  const names = first.map((name) => name.trim());
  const isNamed = names.every((name) => name !== "" && name.length <= 40 && !/^[-+]?[\d.,]+$/.test(name));
  return isNamed && new Set(names).size === names.length;
}

/** Names of the columns, made up where there are none. */
export function columnNames(rows, isNamed) {
  const width = rows.reduce((most, row) => Math.max(most, row.length), 0);
  return Array.from({ length: width }, (_, place) => (isNamed && rows[0][place]?.trim()) || `column ${place + 1}`);
}

/** The column that a wanted one most likely is: by its name, else the one with the longest texts. */
export function likelyColumn(wanted, names, rows, taken) {
  const lower = names.map((name) => name.toLowerCase());
  const isKnown = (name) => (wanted.known instanceof RegExp
    ? wanted.known.test(name) : (wanted.known ?? []).some((known) => known && known.toLowerCase() === name));
  const free = names.map((_, place) => place).filter((place) => !taken.has(place));
  if (wanted.many) return free.filter((place) => isKnown(lower[place]));
  const named = free.find((place) => isKnown(lower[place]));
  if (named !== undefined) return named;
  if (wanted.optional) return null;
  const sample = rows.slice(1, 21);
  const size = (place) => sample.reduce((sum, row) => sum + (row[place]?.length ?? 0), 0);
  return free.length === 0 ? null : free.reduce((best, place) => (size(place) > size(best) ? place : best));
}
