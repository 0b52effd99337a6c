// A file that an operator's command cannot read or write: what the person is told, and what to do about it.

import { adviceOn } from '../common/command-line/file-faults.ts';
import { type CommandFailure, localFailure } from './exit.ts';

export function fileFailure(place: string, verb: 'read' | 'written', code: string): CommandFailure {
  return localFailure(`${place} cannot be ${verb} (${code})`, adviceOn(code));
}
