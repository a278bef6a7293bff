// What a request is told when it cannot be answered: a status as of HTTP, and a sentence.

/** A request that ends here. */
export class Fault extends Error {
  constructor(message, status = 422) {
    super(message);
    this.status = status;
  }
}

/** Refuse outputs that are no numbers. */
export function requireFinite(rows) {
  for (const row of rows) {
    for (const value of row) {
      if (!Number.isFinite(value)) {
        throw new Fault("the model gave NaN or infinity for this text; train or export again", 500);
      }
    }
  }
}
