// One model as the page uses it: what it says about itself, and requests with its name.

import { askKey } from "./key.js";

const MOST_WAITS = 240;

/** Speaks to the backend; asks for a key when one is needed. */
export class Session {
  constructor(backend) {
    this.backend = backend;
    this.info = null;
    this._asking = null;
  }

  /** Read what a model says about itself; waits while it is being loaded. */
  async open(model) {
    for (let tries = 0; ; tries += 1) {
      const info = await this._allowed(() => this.backend.status(model));
      if (info.is_ready !== false || tries === MOST_WAITS) {
        this.info = info;
        return info;
      }
      await new Promise((resume) => setTimeout(resume, 500));
    }
  }

  /** Send a request for this model. */
  post(route, body, options = {}) {
    const several = (this.info.models ?? []).length > 1;
    const sent = several ? { ...body, model: this.info.model_id } : body;
    return this._allowed(() => this.backend.post(route, sent, options));
  }

  async _allowed(work) {
    for (;;) {
      try {
        return await work();
      } catch (fault) {
        if (fault.status !== 401 || !this.backend.setKey) throw fault;
        // Several requests may be refused at once; the person is asked once.
        this._asking ??= this._newKey().finally(() => { this._asking = null; });
        await this._asking;
      }
    }
  }

  async _newKey() {
    const reason = this._hadKey ? "the key was not accepted" : "this server needs an API key";
    this.backend.setKey(await askKey(reason));
    this._hadKey = true;
  }
}
