// One request at a time, always of the latest state: what came in between is left out.

import { isAbort } from "./faults.js";

/** Runs `work(signal)`; `onStart`, `onDone(answer, ms)`, `onFault(fault)` and `onEnd` are told. */
export class Runner {
  constructor({ work, onStart, onDone, onFault, onEnd }) {
    Object.assign(this, { work, onStart, onDone, onFault, onEnd });
    this._control = null;
    this._isStale = false;
  }

  /** Ask for a run; `hard` ends the one that is under way, else it is finished first. */
  request({ hard = false } = {}) {
    if (this._control === null) {
      this._run();
      return;
    }
    this._isStale = true;
    if (hard) this._control.abort();
  }

  /** Forget everything that is under way. */
  stop() {
    this._isStale = false;
    this._control?.abort();
  }

  async _run() {
    do {
      this._isStale = false;
      const control = new AbortController();
      this._control = control;
      const start = performance.now();
      this.onStart();
      try {
        const answer = await this.work(control.signal);
        if (!control.signal.aborted) this.onDone(answer, performance.now() - start);
      } catch (fault) {
        if (!isAbort(fault) && !control.signal.aborted) this.onFault(fault);
      }
    } while (this._isStale);
    this._control = null;
    this.onEnd();
  }
}
