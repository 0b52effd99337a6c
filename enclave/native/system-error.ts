// The addon's results as Node's errors: a negative number is a negated errno.

import { getSystemErrorMap } from 'node:util';

/** What the system calls it: its short name and its own words. */
export function describeErrno(errno: number): { readonly code: string; readonly text: string } {
  const [code, text] = getSystemErrorMap().get(errno) ?? [`errno ${-errno}`, 'unknown system error'];
  return { code, text };
}

/** @returns the result @throws Error with `code`, `errno` and `syscall` when the result is an error */
export function assertResult(syscall: string, result: number): number {
  if (result >= 0) return result;
  const { code, text } = describeErrno(result);
  throw Object.assign(new Error(`${syscall} ${code}: ${text}`), { code, errno: result, syscall });
}
