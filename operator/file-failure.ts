// A file that an operator's command cannot read or write: what the person is told, and what to do about it.

import { adviceOn } from '../command-line/file-faults.ts';
import { type CommandFailure, localFailure } from './exit.ts';

/** @param place the file as a message may show it, and which flag or variable named it */
export function fileFailure(place: string, verb: 'read' | 'written', code: string): CommandFailure {
  return localFailure(`${place} cannot be ${verb} (${code})`, adviceOn(code));
}
