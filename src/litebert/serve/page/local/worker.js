// The model in a thread of its own: loads the files, then answers one request after the other.

import { Fault } from "./faults.js";
import { readFile } from "./files.js";
import { Model } from "./model.js";
import * as ort from "./onnxruntime/ort.wasm.bundle.min.js";

let model = null;

async function open({ manifest, base }) {
  const files = manifest.files;
  const here = (name) => new URL(name, base);
  const names = Object.keys(files);
  const total = names.reduce((sum, name) => sum + files[name].bytes, 0);
  const came = {};
  let last = -1;
  const read = (name) =>
    readFile(here(name), files[name], (size) => {
      came[name] = size;
      const share = Object.values(came).reduce((a, b) => a + b, 0) / total;
      if (share - last < 0.01 && share < 1) return;
      last = share;
      postMessage({ progress: share });
    });
  const runtime = names.find((name) => name.endsWith(".wasm"));
  const [graph, tokenizer, wasm] = await Promise.all(
    [manifest.graph.file, manifest.tokenizer.file, runtime].map(read),
  );
  const { env } = ort;
  env.wasm.wasmBinary = wasm.buffer;
  env.wasm.proxy = false;
  // Threads share memory, which a page may only do when its host sends the headers for it.
  env.wasm.numThreads = globalThis.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency || 1) : 1;
  env.logLevel = "error";
  model = await Model.open(ort, manifest, { graph, tokenizer: JSON.parse(new TextDecoder().decode(tokenizer)) });
  return { threads: env.wasm.numThreads };
}

async function answer({ route, body }) {
  const start = performance.now();
  const result = await model.answer(route, body);
  return { result, milliseconds: performance.now() - start };
}

self.onmessage = async ({ data: { id, kind, ...told } }) => {
  try {
    postMessage({ id, done: await (kind === "open" ? open(told) : answer(told)) });
  } catch (fault) {
    const isKnown = fault instanceof Fault;
    const words = isKnown || kind === "open" ? fault.message : `the model could not answer: ${fault.message}`;
    postMessage({ id, fault: { status: isKnown ? fault.status : 500, message: words } });
  }
};
