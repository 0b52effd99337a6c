// Why a connect failed, as one of a few words: for the metrics and the log.

import { errorWord } from '../log.ts';

export type ConnectFailure = 'refused' | 'timeout' | 'unresolvable' | 'unreachable' | 'failed';

const FAILURES: Readonly<Record<string, ConnectFailure>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'refused',
  ENODEV: 'refused',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'unresolvable',
  EAI_AGAIN: 'unresolvable',
  EAI_FAIL: 'unresolvable',
  EAI_NODATA: 'unresolvable',
  EAI_NONAME: 'unresolvable',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
};

export function connectFailure(error: unknown): ConnectFailure {
  // The last of several addresses that were tried speaks for all.
  const last: unknown = error instanceof AggregateError ? error.errors.at(-1) : error;
  return FAILURES[errorWord(last)] ?? 'failed';
}
