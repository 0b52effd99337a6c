// Asks a signer every case and judges its answers: the signature is verified over the expected root, with blst and
// without the signer's code. Nothing of an answer is believed for being well-formed.

import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { type Chain, expectedRoot } from '../../test/expected/expected-root.ts';
import { requestAt } from '../../test/expected/messages.ts';
import { type Case, type CaseSet, GROUPS, type Group, type Skip } from './case.ts';
import { askDoor } from './door.ts';
import { answerCases, boundaryCases, exitCases, KEYS, presentEpoch, shapeCases } from './message-cases.ts';
import { capturedCases, faultCases, type Target, vectorCases } from './vector-cases.ts';

export interface SignerUnderTest {
  readonly url: string;
  readonly keys: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly chain: Chain;
  readonly target: Target;
  /** A program that restarts the signer, and ends when it serves. */
  readonly restart?: readonly [string, ...string[]] | undefined;
}

/** `refused`: it did not sign what it should have signed. `wrong`: it signed another root, or what no signer signs. */
export type Verdict = 'right' | 'refused' | 'wrong';

export interface Finding {
  readonly group: Group;
  readonly name: string;
  readonly verdict: Verdict;
  readonly says: string;
}

export interface Report {
  readonly findings: readonly Finding[];
  readonly skipped: readonly Skip[];
}

const INTERCHANGE: Skip = {
  group: 'EIP-3076',
  what: 'eip3076/*.json',
  why: 'the signing API reads no interchange file; its conditions are asked with signed messages',
};
const UNKNOWN_KEY = `0x${'ab'.repeat(48)}`;
const MOST_CHARACTERS = 160;

export async function runConformance(signer: SignerUnderTest, vectors: string): Promise<Report> {
  const { cases, skipped } = allCases(signer, vectors);
  const findings: Finding[] = [];
  const raced = new Set<string>();
  for (const one of cases) {
    if (one.race === undefined) findings.push(judge(one, await ask(signer, one), keyOf(signer, one)));
    else if (!raced.has(one.race)) {
      raced.add(one.race);
      findings.push(
        await race(
          signer,
          one,
          cases.filter((other) => other.race === one.race),
        ),
      );
    }
  }
  const door = await askDoor(signer);
  for (const { name, says } of door.findings)
    findings.push({ group: 'door', name, verdict: says === '' ? 'right' : 'wrong', says });
  return { findings, skipped: [...skipped, ...door.skipped] };
}

function allCases(signer: SignerUnderTest, vectors: string): CaseSet {
  const { chain, keys, target } = signer;
  const only = (cases: readonly Case[]): CaseSet => ({ cases, skipped: [] });
  const sets = [
    only(boundaryCases(chain)),
    only(exitCases(chain)),
    only(shapeCases(chain)),
    vectorCases(vectors, target),
    capturedCases(vectors, target),
    { cases: slashingCases(chain), skipped: [INTERCHANGE] },
    answerCases(chain),
    faultCases(target), // some stand in slots after all others
  ];
  const all = sets.flatMap(({ cases }) => cases);
  const has = ({ key }: Case) => key === 'unknown' || key < keys.length;
  const groups = new Set(all.filter((one) => !has(one)).map(({ group }) => group));
  const without = [...groups].map(
    (group): Skip => ({ group, what: 'cases', why: `give ${Object.keys(KEYS).length} keys` }),
  );
  return { cases: all.filter(has), skipped: [...sets.flatMap(({ skipped }) => skipped), ...without] };
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

async function ask(signer: SignerUnderTest, one: Case): Promise<Answer> {
  const { body, accept = 'application/json' } = one;
  const response = await fetch(`${signer.url}/api/v1/eth2/sign/${keyOf(signer, one)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...signer.headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, type: response.headers.get('content-type') ?? '', text: await response.text() };
}

function keyOf({ keys }: Pick<SignerUnderTest, 'keys'>, { key }: Case): string {
  return key === 'unknown' ? UNKNOWN_KEY : (keys[key] ?? UNKNOWN_KEY);
}

function judge({ group, name, expected, accept }: Case, answer: Answer, publicKey: string): Finding {
  const found = (verdict: Verdict, says = ''): Finding => ({ group, name, verdict, says });
  const shown = `${answer.status} ${answer.text.slice(0, MOST_CHARACTERS)}`;
  if (answer.status === 200) {
    if (expected.kind === 'refused') return found('wrong', `it has to be refused, and the answer is ${shown}`);
    const signature = signatureOf(answer, accept ?? 'application/json');
    if (signature === undefined) return found('wrong', `no signature of the asked form: ${answer.type} ${shown}`);
    return isSignature(signature, expected.root, publicKey)
      ? found('right')
      : found('wrong', 'the signature is not over the root of the message');
  }
  if (answer.status < 400 || answer.status >= 500) return found('wrong', `neither signed nor refused: ${shown}`);
  if (expected.kind === 'signed') return found('refused', shown);
  if (expected.kind === 'signed_or_refused' || (expected.statuses?.includes(answer.status) ?? true))
    return found('right');
  return found('wrong', `refused with another status than ${expected.statuses?.join(', ')}: ${shown}`);
}

async function race(signer: SignerUnderTest, first: Case, racers: readonly Case[]): Promise<Finding> {
  const answers = await Promise.all(racers.map((one) => ask(signer, one)));
  const verdicts = racers.map((one, at) => judge(one, answers[at] as Answer, keyOf(signer, one)).verdict);
  const signed = verdicts.filter((verdict) => verdict === 'right').length;
  const name = `of ${racers.length} ${first.race} at once one is signed`;
  const isRight = signed === 1 && !verdicts.includes('wrong');
  return {
    group: first.group,
    name,
    verdict: isRight ? 'right' : 'wrong',
    says: isRight ? '' : `${signed} were signed`,
  };
}

function signatureOf({ text, type }: Answer, accept: string): string | undefined {
  if (accept === 'text/plain')
    return type.startsWith('text/plain') && /^0x[0-9a-f]{192}$/i.test(text) ? text : undefined;
  if (!type.startsWith('application/json')) return undefined;
  try {
    const { signature } = JSON.parse(text) as { signature?: unknown };
    return typeof signature === 'string' && /^0x[0-9a-f]{192}$/i.test(signature) ? signature : undefined;
  } catch {
    return undefined;
  }
}

function isSignature(signature: string, root: Uint8Array, publicKey: string): boolean {
  const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex');
  try {
    return verify(root, PublicKey.fromBytes(bytes(publicKey), true), Signature.fromBytes(bytes(signature), true));
  } catch {
    return false; // no point of the curve
  }
}

const VERDICTS: readonly Verdict[] = ['right', 'refused', 'wrong'];

export function tableOf({ findings, skipped }: Report): string[][] {
  return GROUPS.map((group) => {
    const ofGroup = findings.filter((finding) => finding.group === group);
    const counts = VERDICTS.map((verdict) => ofGroup.filter((finding) => finding.verdict === verdict).length);
    return [group, ...counts.map(String), String(skipped.filter((skip) => skip.group === group).length)];
  });
}

// Cases of EIP-3076 and of the slashing rules of consensus, over the signing API alone: what was signed before decides.
// Asked of keys that sign nothing else here. A refusal is 412, because clients tell it from other refusals by that.

const ROOT = (byte: string) => `0x${byte.repeat(32)}`;
const RACERS = 8;

function slashingCases(chain: Chain): Case[] {
  return [...voteCases(chain), ...blockCases(chain)];
}

function voteCases(chain: Chain): Case[] {
  const base = presentEpoch(chain);
  const vote = (source: number, target: number, head: string, index = '0') => {
    const slot = (base + target) * chain.slotsPerEpoch;
    return requestAt(chain, 'ATTESTATION', slot, {
      index,
      beacon_block_root: ROOT(head),
      source: { epoch: String(base + source), root: ROOT('51') },
      target: { epoch: String(base + target), root: ROOT('52') },
    });
  };
  const make = (name: string, body: ReturnType<typeof vote>, isSigned: boolean, race?: string): Case => ({
    group: 'EIP-3076',
    name,
    key: KEYS.votes,
    body,
    expected: isSigned ? { kind: 'signed', root: expectedRoot(body, chain) } : { kind: 'refused', statuses: [412] },
    ...(race === undefined ? {} : { race }),
  });
  return [
    make('a first vote', vote(0, 1, 'a1'), true),
    make('the same vote again', vote(0, 1, 'a1'), true),
    make('a double vote: another head', vote(0, 1, 'a2'), false),
    make('a double vote: another index', vote(0, 1, 'a1', '1'), false),
    make('a vote that joins distant epochs', vote(2, 12, 'a1'), true),
    make('a vote that it surrounds', vote(3, 11, 'a1'), false),
    make('a vote that surrounds it', vote(1, 13, 'a1'), false),
    make('a source below all sources', vote(-1, 14, 'a1'), false),
    { ...make('a source after its target', vote(16, 15, 'a1'), false), expected: { kind: 'refused' } },
    make('a vote after the refused ones', vote(12, 13, 'a1'), true),
    ...Array.from({ length: RACERS }, (_, at) =>
      make(`of votes at once (${at})`, vote(13, 20, `b${at}`), true, 'votes'),
    ),
  ];
}

function blockCases(chain: Chain): Case[] {
  const base = presentEpoch(chain) * chain.slotsPerEpoch;
  const block = (slot: number, body: string) => requestAt(chain, 'BLOCK_V2', base + slot, { body_root: ROOT(body) });
  const make = (name: string, body: ReturnType<typeof block>, isSigned: boolean, race?: string): Case => ({
    group: 'EIP-3076',
    name,
    key: KEYS.blocks,
    body,
    expected: isSigned ? { kind: 'signed', root: expectedRoot(body, chain) } : { kind: 'refused', statuses: [412] },
    ...(race === undefined ? {} : { race }),
  });
  return [
    make('a first block', block(10, 'a1'), true),
    make('the same block again', block(10, 'a1'), true),
    make('another block of the slot', block(10, 'a2'), false),
    make('a block below all slots', block(9, 'a1'), false),
    make('a block after the refused ones', block(11, 'a1'), true),
    ...Array.from({ length: RACERS }, (_, at) =>
      make(`of blocks at once (${at})`, block(20, `b${at}`), true, 'blocks'),
    ),
  ];
}
