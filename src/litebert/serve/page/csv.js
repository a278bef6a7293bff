// CSV as RFC 4180 has it, and as programs write it: other separators, other line ends, a byte order mark.

const SEPARATORS = [",", ";", "\t", "|"];
const SAMPLE = 1 << 16;
const SLICE = 1 << 14;
const TURN_MS = 12;
const RECORDS = 50;

/** Reads records from parts of a text; a quote counts at the start of a field only. */
export class CsvParser {
  /** `separator` is one character, or empty where each line is one field. */
  constructor(separator) {
    this.separator = separator;
    this.isOpen = false; // inside quotes
    this._wasQuote = false; // a quote inside quotes, which may end them or stand for itself
    this._wasReturn = false;
    this._field = "";
    this._isQuoted = false;
    this._record = [];
  }

  /** Take a part; return the records that are complete. */
  push(part) {
    const found = [];
    for (let i = 0; i < part.length; i += 1) {
      const c = part[i];
      if (this._wasReturn) {
        this._wasReturn = false;
        if (c === "\n") continue;
      }
      if (this._wasQuote) {
        this._wasQuote = false;
        if (c === '"') {
          this._field += '"';
          continue;
        }
        this.isOpen = false;
      }
      if (this.isOpen) {
        if (c === '"') this._wasQuote = true;
        else this._field += c;
      } else if (c === '"' && this._field === "" && !this._isQuoted) {
        this.isOpen = true;
        this._isQuoted = true;
      } else if (c === this.separator) {
        this._endField();
      } else if (c === "\n" || c === "\r") {
        this._wasReturn = c === "\r";
        this._endRecord(found);
      } else {
        this._field += c;
      }
    }
    return found;
  }

  /** Return the last record, if it had no line end. */
  end() {
    const found = [];
    if (this._wasQuote) {
      this._wasQuote = false;
      this.isOpen = false;
    }
    if (this._record.length > 0 || this._field !== "" || this._isQuoted) this._endRecord(found);
    return found;
  }

  _endField() {
    this._record.push(this._field);
    this._field = "";
    this._isQuoted = false;
  }

  _endRecord(found) {
    const isBlank = this._record.length === 0 && this._field === "" && !this._isQuoted;
    this._endField();
    if (!isBlank) found.push(this._record);
    this._record = [];
  }
}

/** The separator with which all records have as many fields; empty: each line is one field. */
export function separatorOf(text) {
  const sample = text.slice(0, SAMPLE);
  let best = { separator: "", width: 1, share: 0 };
  for (const separator of SEPARATORS) {
    const parser = new CsvParser(separator);
    const records = parser.push(sample);
    if (sample.length === text.length) records.push(...parser.end());
    const widths = records.slice(0, RECORDS).map((record) => record.length);
    const width = widths[0] ?? 1;
    const share = widths.filter((other) => other === width).length / Math.max(1, widths.length);
    if (width > 1 && share >= 0.9 && (share > best.share || (share === best.share && width > best.width))) {
      best = { separator, width, share };
    }
  }
  return best.separator;
}

/** The text of a file: UTF-8, UTF-16 with its mark, else Windows-1252. */
export function decoded(buffer) {
  const [a, b, c] = new Uint8Array(buffer.slice(0, 3));
  if (a === 0xff && b === 0xfe) return { text: new TextDecoder("utf-16le").decode(buffer), encoding: "UTF-16", hasMark: true };
  if (a === 0xfe && b === 0xff) return { text: new TextDecoder("utf-16be").decode(buffer), encoding: "UTF-16", hasMark: true };
  try {
    const hasMark = a === 0xef && b === 0xbb && c === 0xbf;
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(buffer), encoding: "UTF-8", hasMark };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(buffer), encoding: "Windows-1252", hasMark: false };
  }
}

/** Let the page draw and take input before going on. */
export function breathe() {
  return new Promise((resume) => setTimeout(resume, 0));
}

/** Return `{rows, separator, isCut}` of a text, a slice at a time; `isCut`: a quote is never closed. */
export async function parseCsv(text, onProgress = () => {}) {
  const whole = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const separator = separatorOf(whole);
  const parser = new CsvParser(separator);
  const rows = [];
  let turn = performance.now();
  for (let start = 0; start < whole.length; start += SLICE) {
    for (const record of parser.push(whole.slice(start, start + SLICE))) rows.push(record);
    if (performance.now() - turn > TURN_MS) {
      onProgress(Math.min(1, (start + SLICE) / whole.length));
      await breathe();
      turn = performance.now();
    }
  }
  rows.push(...parser.end());
  return { rows, separator, isCut: parser.isOpen };
}

/** One record as a line. */
export function csvLine(fields, separator) {
  return `${fields.map((field) => quoted(String(field), separator)).join(separator)}\r\n`;
}

function quoted(field, separator) {
  const isPlain = !field.includes('"') && !field.includes(separator) && !/[\r\n]|^\s|\s$/.test(field);
  return isPlain ? field : `"${field.replaceAll('"', '""')}"`;
}
