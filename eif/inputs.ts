// The files an image is made from, each read once, with the digest of exactly the bytes that went in.

import { readFileSync, statSync } from 'node:fs';
import { adviceOn } from '../common/command-line/file-faults.ts';
import { errorCode } from '../common/formats/error-code.ts';
import { sha256Hex } from './measure.ts';

/** `path`: relative to the project, or as the build was told, or absolute for the system's. */
export interface Input {
  readonly path: string;
  readonly sha256: string;
  readonly size: number;
}

/** What the build was given cannot become an image. `details`: one line each. */
export class BuildError extends Error {
  readonly details: readonly string[];

  constructor(message: string, details: readonly string[] = []) {
    super(message);
    this.name = 'BuildError';
    this.details = details;
  }
}

export class WrongUsage extends BuildError {}

/** Larger than a kernel or the Node.js binary by far. */
const MAX_INPUT_BYTES = 512 * 1024 * 1024;

/** @param what names the file's part in the image, for the error @throws BuildError */
export function readImageInput(path: string, what: string, remedy?: string): Buffer {
  try {
    const { size } = statSync(path);
    if (size > MAX_INPUT_BYTES) throw new BuildError(`${what}: ${path} is larger than ${MAX_INPUT_BYTES} bytes`);
    return readFileSync(path);
  } catch (error) {
    if (error instanceof BuildError) throw error;
    const reason = errorCode(error) ?? 'an unknown error';
    const advice = remedy ?? adviceOn(reason);
    throw new BuildError(`${what}: ${path} cannot be read (${reason})`, advice === undefined ? [] : [advice]);
  }
}

export function readPinned(path: string, sha256: string, what: string): Buffer {
  const bytes = readImageInput(path, what);
  const found = sha256Hex(bytes);
  if (found === sha256) return bytes;
  throw new BuildError(`${what}: ${path} is not the file that was pinned`, [
    `SHA-256 pinned ${sha256}`,
    `SHA-256 found  ${found}`,
  ]);
}

export function inputOf(path: string, bytes: Uint8Array): Input {
  return { path, sha256: sha256Hex(bytes), size: bytes.length };
}

/** By the bytes of the path, so that no locale and no order of reading shows. */
export function sortedInputs(inputs: readonly Input[]): Input[] {
  return [...inputs].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}
