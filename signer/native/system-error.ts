// The addon's results as errors: a negative number is a negated errno.

import { getSystemErrorMap } from 'node:util';
import { TransportError } from './transport.ts';

/** What the system calls it: its short name and its own words. */
export function describeErrno(errno: number): { readonly code: string; readonly text: string } {
  const [code, text] = getSystemErrorMap().get(errno) ?? [`errno ${-errno}`, 'unknown system error'];
  return { code, text };
}

/** @param doing for the message @returns the result @throws TransportError when the result is an error */
export function assertResult(doing: string, result: number): number {
  if (result >= 0) return result;
  const { code, text } = describeErrno(result);
  throw new TransportError(code, `${doing} ${code}: ${text}`);
}
