// Many rows through a route, some at a time: a row that cannot be answered costs its company nothing.

import { isAbort } from "./faults.js";

const AT_ONCE = 2;
const MOST_TRIES = 8;
const LATER = new Set([0, 429, 503]); // not now
const SMALLER = new Set([400, 413, 422, 500, 504]); // not all of these

/**
 * Return a list with an answer or an error for each row.
 * `ask(rows, signal)` gives as many answers as rows; `size` rows are sent together; `found` may be
 * given, and holds what was answered when `signal` ends it or it fails.
 * `onProgress(done)` counts rows.
 */
export async function runBatch({ rows, size, ask, signal, onProgress, found = new Array(rows.length) }) {
  const waiting = [];
  for (let start = 0; start < rows.length; start += size) waiting.push([start, Math.min(rows.length, start + size)]);
  waiting.reverse();
  const control = new AbortController();
  const end = () => control.abort();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  let done = 0;

  async function work() {
    while (waiting.length > 0 && !control.signal.aborted) {
      const [start, stop] = waiting.pop();
      try {
        const answers = await patient(() => ask(rows.slice(start, stop), control.signal), control.signal);
        answers.forEach((answer, place) => { found[start + place] = { answer }; });
      } catch (fault) {
        if (isAbort(fault)) return;
        if (!SMALLER.has(fault.status)) throw fault;
        if (stop - start > 1) {
          const middle = (start + stop) >> 1;
          waiting.push([middle, stop], [start, middle]);
          continue;
        }
        found[start] = { error: fault.message };
      }
      done += stop - start;
      onProgress(done);
    }
  }

  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } catch (fault) {
    end();
    throw fault;
  } finally {
    signal.removeEventListener("abort", end);
  }
  return found;
}

/** Try again where the answer is "not now". */
async function patient(ask, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (fault) {
      if (!LATER.has(fault.status) || tries === MOST_TRIES) throw fault;
      const seconds = fault.retryAfter ?? Math.min(8, 0.25 * 2 ** tries);
      await pause(1000 * seconds, signal);
    }
  }
}

function pause(ms, signal) {
  return new Promise((resume, reject) => {
    const timer = setTimeout(resume, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("ended", "AbortError"));
    }, { once: true });
  });
}
