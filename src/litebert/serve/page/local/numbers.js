// Arithmetic on outputs of the model, in 64 bits as `litebert/tasks` has it.

/** Probabilities that add up to 1. */
export function softmax(values) {
  const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = Array.from(values, (value) => Math.exp(value - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** The probability of yes. */
export function sigmoid(value) {
  const small = Math.exp(-Math.abs(value));
  return (value >= 0 ? 1 : small) / (1 + small);
}

/** Places of the largest values first; of equal ones the first. */
export function order(values) {
  return Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
}

/** Place of the largest value; of equal ones the first. */
export function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i += 1) if (values[i] > values[best]) best = i;
  return best;
}

/** The mean of rows, number by number. */
export function meanRows(rows) {
  if (rows.length === 1) return Array.from(rows[0]);
  return Array.from(rows[0], (_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
}

/** The vector scaled to length 1. */
export function unit(vector) {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return Array.from(vector, (value) => value / Math.max(length, 1e-12));
}

/** First place in rising values whose value is at least (`isRight`: above) `wanted`. */
export function search(values, wanted, isRight = false) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted || (isRight && values[middle] === wanted)) low = middle + 1;
    else high = middle;
  }
  return low;
}
