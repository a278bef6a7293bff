// The server that the page came from, as something that answers routes.

/** A fault of a request: `status` of HTTP (0: no answer), a sentence, seconds to wait if told. */
export class ServerFault extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Return the backend of the server. */
export function openServer() {
  let key = null; // in memory only: it is gone with the page

  async function ask(route, options = {}) {
    const headers = { accept: "application/json", ...(options.headers ?? {}) };
    if (key !== null) headers.authorization = `Bearer ${key}`;
    let answer;
    try {
      answer = await fetch(new URL(route.replace(/^\//, ""), document.baseURI), {
        ...options,
        headers,
        credentials: "omit",
        redirect: "error",
      });
    } catch (fault) {
      if (fault.name === "AbortError") throw fault;
      throw new ServerFault(0, "the server cannot be reached; is it still running?");
    }
    let content = null;
    try {
      content = await answer.json();
    } catch (fault) {
      if (fault.name === "AbortError") throw fault;
    }
    if (answer.ok && content !== null) return content;
    const told = content?.error ?? content?.message;
    const wait = Number.parseFloat(answer.headers.get("retry-after") ?? "");
    throw new ServerFault(
      answer.ok ? 502 : answer.status,
      typeof told === "string" ? told : `the server answered with status ${answer.status} and no reason`,
      Number.isFinite(wait) ? wait : null,
    );
  }

  return {
    /** Take a key for the requests that follow; null: none. */
    setKey(value) {
      key = value;
    },
    status(model) {
      return ask(model === undefined ? "info" : `info?model=${encodeURIComponent(model)}`);
    },
    post(route, body, { signal } = {}) {
      return ask(route, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": "application/json" },
        signal,
      });
    },
  };
}
