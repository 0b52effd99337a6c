// What `operator verify` reads from its command line beside files: times, nonces, URLs and reference values. Only
// verify.ts imports it, which then has one thing to say.

import type { ReferenceConfiguration } from '../attestation/configuration-file.ts';
import { UsageFailure } from '../exit.ts';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;
const MAX_NONCE_BYTES = 1024;

/** PCR16 is that of the file, and of nothing else that is said. */
export function registersGiven(
  registers: readonly string[] | undefined,
  configuration: ReferenceConfiguration | undefined,
): string | undefined {
  if (configuration === undefined) return registers?.join(',');
  if (registers?.some((register) => register.startsWith('16=')) === true) {
    throw new UsageFailure('--config and --pcr 16=HEX both say what PCR16 is', 'give one of them');
  }
  return [...(registers ?? []), `16=${configuration.pcr16}`].join(',');
}

export function flag(
  name: string,
  text: string | undefined,
): { readonly text: string; readonly origin: string } | undefined {
  return text === undefined ? undefined : { text, origin: `--${name}` };
}

export function readUrl(written: string): URL {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  const plain = url?.protocol === 'https:' && url.pathname === '/' && url.search === '' && url.username === '';
  if (url !== undefined && plain) return url;
  throw new UsageFailure('EVIDENCE: a URL is https: with a host and a port', 'for example https://signer.example:9443');
}

export function readTime(written: string): number {
  const time = RFC3339.test(written) ? Date.parse(written) : Number.NaN;
  if (Number.isNaN(time)) throw new UsageFailure('--at is not a time of RFC 3339', 'for example 2026-01-03T20:41:07Z');
  return time;
}

export function readNonce(written: string | undefined): Buffer | undefined {
  if (written === undefined) return undefined;
  const nonce = /^([0-9a-f]{2})+$/i.test(written) ? Buffer.from(written, 'hex') : undefined;
  if (nonce !== undefined && nonce.length <= MAX_NONCE_BYTES) return nonce;
  throw new UsageFailure(`--nonce is hex, at most ${MAX_NONCE_BYTES} bytes`);
}
