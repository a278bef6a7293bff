// Numbers as people read them.

const whole = new Intl.NumberFormat("en");

/** A probability: `94.1 %`; what is not quite 0 or 1 does not look like it. */
export function percent(p) {
  if (!Number.isFinite(p)) return "–";
  if (p > 0 && p < 0.0005) return "< 0.1 %";
  if (p < 1 && p > 0.9995) return "> 99.9 %";
  return `${(100 * p).toFixed(1)} %`;
}

/** A number of any size with three digits that count. */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 100000) ? value.toExponential(2) : value.toFixed(size < 10 ? 3 : 1);
}

/** A whole number with separators: `12,034`. */
export function count(value, one, many = `${one}s`) {
  return one === undefined ? whole.format(value) : `${whole.format(value)} ${value === 1 ? one : many}`;
}

/** A time: `8.4 ms`, `120 ms`, `1.3 s`. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 90000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60000)} min`;
}

/** A name of a measure: `f1_macro` becomes `f1 macro`. */
export function readable(name) {
  return String(name).replaceAll("_", " ");
}
