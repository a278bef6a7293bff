// The model beside the page as something that answers routes, as the server would.

/** A fault of a request: `status` as of HTTP, and a sentence. */
class LocalFault extends Error {
  constructor({ status, message }) {
    super(message);
    this.status = status;
  }
}

function aborted() {
  return new DOMException("the request is no longer wanted", "AbortError");
}

/** The worker, one request at a time: what waits can still be called off. */
class Line {
  constructor(onProgress) {
    this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.waiting = [];
    this.current = null;
    this.broken = null;
    this.number = 0;
    this.worker.onmessage = ({ data }) => (data.id === undefined ? onProgress(data.progress) : this.finish(data));
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      const reason = event.message ? `: ${event.message}` : "";
      this.broken = new LocalFault({ status: 503, message: `the model has stopped${reason}; load the page again` });
      for (const job of [this.current, ...this.waiting]) job?.reject(this.broken);
      this.waiting = [];
      this.current = null;
    };
  }

  send(message, signal) {
    return new Promise((resolve, reject) => {
      if (this.broken) return reject(this.broken);
      if (signal?.aborted) return reject(aborted());
      const job = { message, resolve, reject };
      signal?.addEventListener("abort", () => {
        this.waiting = this.waiting.filter((other) => other !== job);
        reject(aborted()); // one that is being computed is finished, and not listened to
      }, { once: true });
      this.waiting.push(job);
      return this.next();
    });
  }

  next() {
    if (this.current || !this.waiting.length) return;
    this.current = this.waiting.shift();
    this.number += 1;
    this.worker.postMessage({ ...this.current.message, id: this.number });
  }

  finish({ id, done, fault }) {
    if (id !== this.number || !this.current) return;
    const { resolve, reject } = this.current;
    this.current = null;
    if (fault) reject(new LocalFault(fault));
    else resolve(done);
    this.next();
  }
}

/**
 * Load the model that a manifest names, and return what answers.
 * `onProgress(share, text)` is told how far loading is, share from 0 to 1.
 */
export async function openLocal(manifest, onProgress = () => {}) {
  if (manifest?.format_version !== 1) {
    throw new LocalFault({ status: 500, message: "the model is of another version than the page; export it again" });
  }
  const base = new URL("model/", document.baseURI).href;
  const line = new Line((share) => onProgress(0.9 * share, share < 1 ? "Loading the model" : "Starting the model"));
  onProgress(0, "Loading the model");
  const { threads } = await line.send({ kind: "open", manifest, base });
  onProgress(1, "The model is ready");
  return {
    /** As `GET /info`. */
    async status() {
      return { ...manifest.info, threads, is_ready: true };
    },
    /** The answer of a route. */
    async post(route, body, { signal } = {}) {
      const { result } = await line.send({ kind: "post", route, body }, signal);
      return result;
    },
    /** Stop the model and give its memory back. */
    close() {
      line.worker.terminate();
    },
  };
}
