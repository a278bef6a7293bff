// The files beside the page: read once, counted while they come, and checked against their digests.

/** A file that is missing or is not the one that was exported. */
export class FileFault extends Error {}

/**
 * Return the bytes of a file.
 * `known` has its `bytes` and `sha256`; `onBytes` is told how many have come, in all.
 * A file of another digest is asked for once more, past the browser's cache: it may be of an older export.
 */
export async function readFile(url, known, onBytes = () => {}) {
  const versioned = new URL(url);
  versioned.searchParams.set("v", known.sha256.slice(0, 12));
  for (const cache of ["default", "reload"]) {
    const bytes = await download(versioned, known.bytes, cache, onBytes);
    const found = bytes.length === known.bytes ? await digest(bytes) : "";
    if (found === null || found === known.sha256) return bytes;
  }
  throw new FileFault(
    `the file ${nameOf(url)} is not the one that was exported: it was changed, or did not come whole; ` +
      "load the page again, or export the model again",
  );
}

async function download(url, total, cache, onBytes) {
  let answer;
  try {
    answer = await fetch(url, { cache, credentials: "same-origin" });
  } catch {
    throw new FileFault(`the file ${nameOf(url)} cannot be loaded; is the connection up?`);
  }
  if (!answer.ok) {
    throw new FileFault(`the file ${nameOf(url)} is not beside the page (status ${answer.status}); export the model again`);
  }
  const reader = answer.body.getReader();
  const bytes = new Uint8Array(total);
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (size + value.length > total) {
      await reader.cancel();
      return new Uint8Array(0);
    }
    bytes.set(value, size);
    size += value.length;
    onBytes(size);
  }
  return size === total ? bytes : bytes.subarray(0, size);
}

/** The sha256 in hex; null where the browser has none: only pages by https and of this machine do. */
async function digest(bytes) {
  if (!globalThis.crypto?.subtle) return null;
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function nameOf(url) {
  return new URL(url).pathname.split("/").pop();
}
