// Cases of recorded material: the vectors beside the project, which are read and never copied, and the faults of
// clients (test/expected/client-faults.json). What is for another network than the signer's, or is not there, is left
// out by name.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientFaults } from '../../test/expected/client-faults.ts';
import type { Body } from '../../test/expected/expected-root.ts';
import type { Case, CaseSet, Group, Skip } from './case.ts';
import { KEYS } from './message-cases.ts';

export interface Target {
  readonly network: string;
  readonly keyCount: number;
  readonly bids: boolean;
}

interface GloasVectors {
  readonly vectors: readonly { readonly name: string; readonly request: Body; readonly signing_root: string }[];
}

/** One of these is signed for a key and slot or target: other content needs another key. */
const ONE_EACH: ReadonlySet<string> = new Set([
  'ATTESTATION',
  'BLOCK_V2',
  'PAYLOAD_ATTESTATION_MESSAGE',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'EXECUTION_PAYLOAD_BID',
]);

const OF_ANOTHER_CHAIN = ['signing/web3signer-openapi-examples.json', 'signing/third-party-go-signer.json'];
const FIRST_VECTOR_KEY = Object.keys(KEYS).length;
/** Empty `data` is refused since, and inclusion lists have no type in the API. */
const isToRefuse = ({ name, request }: GloasVectors['vectors'][number]) =>
  name === 'builder request auth, empty' || request.type === 'INCLUSION_LIST';

export function vectorCases(folder: string, target: Target): CaseSet {
  const file = 'gloas/sepolia.json';
  const skip = (what: string, why: string): Skip => ({ group: 'vectors', what, why });
  const others = OF_ANOTHER_CHAIN.map((one) => skip(one, 'it is for a test chain whose forks all have one version'));
  if (target.network !== 'sepolia') return { cases: [], skipped: [skip(file, 'it is for sepolia'), ...others] };
  const path = join(folder, file);
  if (!existsSync(path)) return { cases: [], skipped: [skip(file, 'it is not beside the project'), ...others] };
  const { vectors } = JSON.parse(readFileSync(path, 'utf8')) as GloasVectors;
  const used = new Map<string, number>();
  const cases: Case[] = [];
  const skipped: Skip[] = [...others];
  for (const vector of vectors) {
    const { name, request, signing_root } = vector;
    const { type } = request;
    const place = used.get(type) ?? 0;
    const key = ONE_EACH.has(type) ? FIRST_VECTOR_KEY + place : KEYS.shapes;
    if (ONE_EACH.has(type)) used.set(type, place + 1);
    if (type === 'EXECUTION_PAYLOAD_BID' && !target.bids)
      skipped.push(skip(name, 'off unless the file of the signer says so'));
    else if (key >= target.keyCount) skipped.push(skip(name, `it needs ${key + 1} keys`));
    else if (isToRefuse(vector))
      cases.push({ group: 'vectors', name, key, body: request, expected: { kind: 'refused' } });
    else {
      const expected = { kind: 'signed', root: bytes(signing_root) } as const;
      cases.push({ group: 'vectors', name, key, body: request, expected });
    }
  }
  return { cases, skipped };
}

interface Capture {
  readonly set: string;
  readonly path: string;
  readonly body: string;
  readonly response: { readonly status: number };
}

/** One request of each type of each recorded chain, as its client sent it, over the root that the client computed. */
export function capturedCases(folder: string, target: Target): CaseSet {
  const group: Group = 'captured shapes';
  const file = 'signing/lodestar-captures.jsonl';
  const skipped = (why: string): CaseSet => ({ cases: [], skipped: [{ group, what: file, why }] });
  if (target.network !== 'mainnet') return skipped('it is for mainnet');
  const path = join(folder, file);
  if (!existsSync(path)) return skipped('it is not beside the project');
  const seen = new Set<string>();
  const sets: string[] = []; // chains of their own: a key signs for one of them
  const cases: Case[] = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '') continue;
    const { set, path: route, body, response } = JSON.parse(line) as Capture;
    if (response.status !== 200 || !route.startsWith('/api/v1/eth2/sign/')) continue;
    if (!sets.includes(set)) sets.push(set);
    const request = JSON.parse(body) as Body & { readonly signingRoot?: string };
    const name = `${request.type} of ${set}`;
    if (seen.has(name) || request.signingRoot === undefined) continue;
    seen.add(name);
    const expected = { kind: 'signed', root: bytes(request.signingRoot) } as const;
    cases.push({ group, name, key: FIRST_VECTOR_KEY + sets.indexOf(set), body: request, expected });
  }
  return { cases, skipped: [] };
}

export function faultCases(target: Target): CaseSet {
  const group: Group = 'client faults';
  const { network, vectors } = clientFaults();
  if (target.network !== network) {
    return { cases: [], skipped: [{ group, what: 'client-faults.json', why: `it is for ${network}` }] };
  }
  const cases = vectors.map(({ name, request, signing_root, client_fault, reason }): Case => {
    const root = signing_root === undefined ? undefined : bytes(signing_root);
    const kind = client_fault === undefined && reason === undefined ? 'signed' : 'signed_or_refused';
    return {
      group,
      name,
      key: KEYS.shapes,
      body: request,
      expected: root === undefined ? { kind: 'refused' } : { kind, root },
    };
  });
  return { cases, skipped: [] };
}

function bytes(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex.slice(2), 'hex'));
}
