// The one path to a signature when a part of it fails: what was begun for the request is ended all the same.

import { expect, it } from 'vitest';
import type { Span } from '../../common/observe/tracing.ts';
import { SignerError } from '../../signer/api/errors.ts';
import type { LoadedKey } from '../../signer/keys/loaded-key.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import type { SigningDependencies } from '../../signer/sign/dependencies.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { createPermits } from '../../signer/sign/permits.ts';
import { sign } from '../../signer/sign/sign.ts';
import { inFlightSigning } from '../../signer/tenure.ts';
import { attestation, testKey } from '../support/requests.ts';

const KEY: LoadedKey = {
  publicKey: testKey(0).publicKey,
  handle: {} as LoadedKey['handle'],
  source: 'memory',
  loadedAt: 0,
  tenure: 0,
};
const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: 0, priorityJobs: 0 });

/** Keeps the names of spans that began and did not end. */
function openSpans(): { readonly span: Span; readonly open: string[]; readonly seen: string[] } {
  const [open, seen]: [string[], string[]] = [[], []];
  const make = (name: string): Span => ({
    child(childName) {
      open.push(childName);
      seen.push(childName);
      return make(childName);
    },
    setAttribute: () => undefined,
    end: () => void open.splice(open.indexOf(name), 1),
  });
  return { span: make('request'), open, seen };
}

function request(): SignRequest {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(attestation())));
  if (parsed.kind !== 'request') throw new Error(parsed.reason);
  return parsed.request;
}

const failing = (reason: 'slashing_unavailable' | 'signing_unavailable') => () =>
  Promise.reject(new SignerError(reason));

it.each([
  ['slashing protection', 'slashing_unavailable', ['slashing'], { check: failing('slashing_unavailable') }],
  [
    'the signing core',
    'signing_unavailable',
    ['slashing', 'sign'],
    { check: async () => ({ kind: 'safe', repeat: false }) as const },
  ],
] as const)('a call of %s that fails leaves no span and no permit behind', async (_what, reason, names, slashing) => {
  const { span, open, seen } = openSpans();
  const dependencies: SigningDependencies = {
    network: publicNetwork('mainnet'),
    core: { sign: failing('signing_unavailable') } as unknown as SigningDependencies['core'],
    slashing: {
      ...slashing,
      checkGroup: failing('slashing_unavailable'),
      signedBlockRoot: failing('slashing_unavailable'),
    },
    permits,
    inFlight: inFlightSigning(),
    equivocation: { claim: () => undefined },
    priorityOperations: new Set(),
    canaryKeys: new Set(),
    onCanary: () => undefined,
    hindrance: () => undefined,
  };
  const signal = new AbortController().signal;
  await expect(sign(request(), KEY, { signal, span }, dependencies)).rejects.toMatchObject({ reason });
  expect(seen).toEqual(names);
  expect(open).toEqual([]);
  expect(permits.load('normal').inFlight).toBe(0);
});
