// Bytes from wherever they are: memory, an address, or a file where there are files.

import { ModelError } from "./errors.js";

const IS_NODE = typeof process === "object" && process.versions?.node !== undefined;

/** The bytes of a source: bytes, an answer of `fetch`, an address, or in Node the path of a file. */
export async function bytesOf(source) {
  const found = await source;
  if (found instanceof ArrayBuffer) return new Uint8Array(found);
  if (ArrayBuffer.isView(found)) return new Uint8Array(found.buffer, found.byteOffset, found.byteLength);
  if (typeof Response === "function" && found instanceof Response) return body(found);
  if (typeof found === "string" || found instanceof URL) return fetched(found);
  throw new TypeError("model: expected bytes, an address, a file's path or an answer of fetch");
}

async function fetched(address) {
  const file = IS_NODE ? fileOf(address) : null;
  try {
    if (file === null) return await body(await fetch(address));
    const { readFile } = await import("node:fs/promises");
    return await readFile(file);
  } catch (error) {
    if (error instanceof ModelError) throw error;
    throw new ModelError(`${address}: ${error.message}`, { cause: error });
  }
}

/** The file that an address names, or null for one to be fetched. */
function fileOf(address) {
  if (address instanceof URL) return address.protocol === "file:" ? address : null;
  if (address.startsWith("file:")) return new URL(address);
  return /^(https?|data|blob):/.test(address) ? null : address;
}

async function body(response) {
  if (response.ok) return new Uint8Array(await response.arrayBuffer());
  throw new ModelError(`${response.url}: expected a file, got status ${response.status}`);
}
