// Who answers: the server that the page came from, or the model beside the page.

import { openServer } from "./backend_server.js";

/** Where the page runs: "server" or "static". */
export function mode() {
  return document.querySelector('meta[name="litebert-mode"]')?.content ?? "server";
}

/**
 * Return what answers: `status()` gives the object of `GET /info`, `post(route, body, {signal})` the
 * answer of a route; faults are errors with `status` and a sentence.
 * `onProgress(share, text)` is told how far loading is, share from 0 to 1.
 */
export async function openBackend(onProgress = () => {}) {
  if (mode() !== "static") return openServer();
  const answer = await fetch(new URL("model/manifest.json", document.baseURI));
  if (!answer.ok) throw new Error("the model is not beside the page; export it again");
  const manifest = await answer.json();
  const { openLocal } = await import("./local/backend.js");
  return openLocal(manifest, onProgress);
}
