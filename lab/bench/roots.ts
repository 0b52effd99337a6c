// CPU µs of parsing and of the signing root, by type of request; and of an attestation's root with each hasher of the
// SSZ library. Run it directly: bin/pinned-node lab/bench/roots.ts

import { setHasher } from '@chainsafe/persistent-merkle-tree';
import { hasher as webAssembly } from '@chainsafe/persistent-merkle-tree/hasher/as-sha256';
import { hasher as noble } from '@chainsafe/persistent-merkle-tree/hasher/noble';
import * as fc from 'fast-check';
import { useFastestHasher } from '../../signer/operations/leaves.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import { ROWS } from '../../signer/operations/rows.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import { computeDomain, computeSigningRoot, forkRefusal } from '../../signer/sign/message-root.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { type Body, signRequestBody } from '../../test/sign/sign-request-arbitraries.ts';

const NETWORK = publicNetwork('mainnet');
const ROUNDS = 5;
const CALLS_PER_ROUND = 4000;
const SAMPLES = 400;
const SEED = 1;

function requestOf(bytes: Uint8Array): SignRequest {
  const parsed = parseSignRequest(bytes);
  if (parsed.kind === 'refused') throw new Error(parsed.hint);
  return parsed.request;
}

/** CPU time of a call in µs, the median of some rounds: the wall clock of a shared machine says little. */
function microseconds<T>(inputs: readonly T[], call: (input: T) => void): string {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const start = process.cpuUsage();
    for (let index = 0; index < CALLS_PER_ROUND; index++) call(inputs[index % inputs.length] as T);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / CALLS_PER_ROUND;
  });
  return (rounds.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? 0).toFixed(2).padStart(9);
}

function rootOf(request: SignRequest): void {
  computeSigningRoot(request, NETWORK);
}

function label(body: Body): string {
  const block = body['beacon_block'] as Body | undefined;
  return block === undefined ? String(body['type']) : `BLOCK_V2 ${block['block'] === undefined ? 'header' : 'full'}`;
}

const bodies = Map.groupBy(fc.sample(signRequestBody, { numRuns: SAMPLES, seed: SEED }), label);

console.log(`${'CPU µs a call'.padEnd(40)}    parse     root    bytes`);
for (const [name, group] of [...bodies].toSorted(([a], [b]) => a.localeCompare(b))) {
  const texts = group.map((body) => Buffer.from(JSON.stringify(body)));
  const parse = microseconds(texts, requestOf);
  // A fork that is refused has no root.
  const requests = texts.map(requestOf).filter((request) => forkRefusal(request, NETWORK) === undefined);
  const root = requests.length === 0 ? '–'.padStart(9) : microseconds(requests, rootOf);
  const size = texts.reduce((sum, text) => sum + text.length, 0) / texts.length;
  console.log(`${name.padEnd(40)}${parse}${root}${size.toFixed(0).padStart(9)}`);
}

const domain = () =>
  computeDomain(ROWS.RANDAO_REVEAL.domain, NETWORK.genesisForkVersion, NETWORK.genesisValidatorsRoot);
console.log(`${'one domain'.padEnd(40)}         ${microseconds([0], domain)}`);

const attestations = (bodies.get('ATTESTATION') ?? []).map((body) => requestOf(Buffer.from(JSON.stringify(body))));
for (const hasher of [noble, webAssembly]) {
  setHasher(hasher);
  const root = microseconds(attestations, rootOf);
  console.log(`${`ATTESTATION with ${hasher.name}`.padEnd(40)}         ${root}`);
}
console.log(`the signer uses ${await useFastestHasher()}`);
