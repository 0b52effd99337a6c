// Reading the image files that a command names.

import { ImageFormatError } from '../format/format.ts';
import { BuildError, readImageInput } from '../inputs.ts';

export function readImageBytes(path: string): Buffer {
  return readImageInput(path, 'the image');
}

export function naming<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof ImageFormatError) throw new BuildError(`${path} is ${error.message}`);
    throw error;
  }
}
