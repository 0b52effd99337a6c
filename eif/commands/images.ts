// Reading the image files that a command names.

import { ImageFormatError } from '../format/format.ts';
import { BuildError, readInput } from '../inputs.ts';

/** @throws BuildError when it cannot be read */
export function readImageBytes(path: string): Buffer {
  return readInput(path, 'the image');
}

/** @throws BuildError that names the file which is no image */
export function naming<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof ImageFormatError) throw new BuildError(`${path} is ${error.message}`);
    throw error;
  }
}
