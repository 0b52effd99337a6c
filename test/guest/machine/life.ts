// What the suite "machine" checks, in order: the boot from the EIF file, the registers as the machine's NSM gives them,
// that nobody believes an unsigned document, and the enclave's life on it: custody, a key, votes, sealing. Each answer
// comes from the enclave over RA-TLS.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type AttestationDocument, readPayload } from '../../../common/attestation/document.ts';
import { decodeCbor } from '../../../common/formats/cbor.ts';
import { verifyCertificate } from '../../../operator/attestation/certificate-evidence.ts';
import { runWithRoot } from '../../operator/run-operator.ts';
import { PROJECT_ROOT } from '../../support/addon.ts';
import { latestEpoch } from '../../support/present.ts';
import { connectRatls, type RatlsClient } from '../../support/ratls-client.ts';
import type { Appliance } from '../appliance/image.ts';
import { rootToken, until } from '../appliance/programs/steps.ts';
import { voteRequest } from '../appliance/programs/votes.ts';
import { checkFirstSignature } from '../appliance/signature.ts';
import type { Checks } from '../outside-checks.ts';
import { run } from '../tools.ts';
import type { ParentSide } from './parent.ts';
import { CMDLINE } from './settings.ts';

export interface MachineParts {
  readonly appliance: Appliance;
  readonly parent: ParentSide;
  readonly consoleFile: string;
  /** Once the machine has. */
  readonly ended: Promise<void>;
  hasEnded(): boolean;
}

/** Registers that pcrs.json has and a document of the machine has to have. */
const COMPARED = ['0', '1', '2', '16', '17'];
/** No certificate of the machine leads to it, or to any. */
const SOME_ROOT = 'ab'.repeat(32);
const NOT_AUTHENTIC = 5;

export async function lifeOnTheMachine({ check }: Checks, parts: MachineParts): Promise<void> {
  const { appliance, parent } = parts;
  const found: Found = { tokens: [] };
  await check('the image states on its measured command line what differs: CID 2, unsigned evidence', () => {
    const described = run(join(PROJECT_ROOT, 'bin/strongroom'), ['eif', 'describe', appliance.file]).toString();
    assert(described.includes(`Command line: ${CMDLINE}\n`), described);
    assert.match(described, /^For tests only: .*CID 2.*unsigned/m);
  });
  await check('the EIF file boots as it is: its kernel, modules and init, with a heartbeat to the host', async () => {
    await ready(parts);
    assert.equal(parent.heartbeats(), 1);
  });
  await check('PCR0, PCR1, PCR2, PCR16 and PCR17 of the NSM’s answer are those of pcrs.json', async () => {
    found.client = await connectToEnclave(parent);
    compare(appliance, documentOf(found.client).pcrs);
  });
  await check('custody was initialised: KMS was called with documents of these registers', () => {
    const documents = parent.standIns.kms.calls.flatMap(({ document }) => document ?? []);
    assert(documents.length >= 2, `${documents.length} attested calls`);
    for (const document of documents) compare(appliance, payloadOf(document).pcrs);
  });
  await check('nobody believes an unsigned document: operator verify ends with exit code 5', async () => {
    const pcrs = join(appliance.file, '../pcrs.json');
    const { code, stderr, stdout } = await runWithRoot(['verify', parent.tlsUrl, '--pcrs', pcrs], {
      rootFingerprint: SOME_ROOT,
    });
    assert.equal(code, NOT_AUTHENTIC, stderr + stdout);
  });
  await check('the participant’s root token opens, a policy and a token are made, a key is generated', () =>
    giveAccess(parts, found),
  );
  await check('a vote is signed, verified on this side; another one for its target is refused with 412', () =>
    vote(found),
  );
  await check('sealed, it signs nothing', () => seal(found));
  await check('no token was on the console or in a log', () => {
    const told = readFileSync(parts.consoleFile, 'utf8') + JSON.stringify(parent.lines);
    assert(told.includes('"measured"'), 'nothing was told at all');
    for (const token of found.tokens) assert(!told.includes(token), 'a token was shown');
  });
  await found.client?.close();
}

export interface Found {
  client?: RatlsClient;
  publicKey?: string;
  readonly tokens: string[];
}

export async function ready(parts: MachineParts): Promise<void> {
  await until(
    () => probe(parts),
    (status) => status === 200,
  );
}

async function probe({ parent, hasEnded }: MachineParts): Promise<number> {
  assert(!hasEnded(), 'the machine has ended');
  try {
    const response = await fetch(`${parent.probesUrl}/healthcheck`, { signal: AbortSignal.timeout(10_000) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

/** Through the parent proxy, which writes the PROXY header itself. What the peer shows is for the checks to judge. */
export function connectToEnclave({ ingressPorts }: ParentSide): Promise<RatlsClient> {
  const transport = { connect: async () => connect({ host: '127.0.0.1', port: ingressPorts.tls }), listen: never };
  return connectRatls(transport, { preamble: Buffer.alloc(0) });
}

function never(): never {
  throw new Error('a client does not listen');
}

/** The evidence in its certificate, bound to the key that the connection has. */
function documentOf({ certificate }: RatlsClient): AttestationDocument {
  const provider = { name: 'nobody', rootSha256: SOME_ROOT };
  const { verdict, evidence } = verifyCertificate(certificate, { provider, at: Date.now(), maxAgeSeconds: 3600 });
  assert(!verdict.authentic && evidence !== undefined, 'the certificate carries no evidence, or it is authentic');
  const document = payloadOf(evidence.document);
  assert.deepEqual(document.userData, evidence.binding);
  return document;
}

function payloadOf(document: Buffer): AttestationDocument {
  const [, , payload] = decodeCbor(document, { tag: 18 }) as readonly [unknown, unknown, Buffer];
  return readPayload(payload);
}

function compare({ registers }: Appliance, pcrs: ReadonlyMap<number, Buffer>): void {
  const shown = COMPARED.map((index) => [index, pcrs.get(Number(index))?.toString('hex')]);
  assert.deepEqual(
    shown,
    COMPARED.map((index) => [index, registers[index]]),
  );
}

export async function giveAccess({ appliance, parent }: MachineParts, found: Found): Promise<void> {
  const root = await rootToken(parent.standIns.dynamodb, appliance.identity);
  found.tokens.push(root);
  const policy = { name: 'everything', rules: [{ effect: 'allow', scopes: ['sign', 'chamber_keys_generate'] }] };
  await demand(found, '/api/v1/auth/policies', policy, 201);
  const made = await demand(found, '/api/v1/auth/tokens', { policies: ['everything'] }, 201);
  found.tokens.push(String(made['token']));
  const generated = await demand(found, '/api/v1/chamber/keys/generate-keys', { count: 1 }, 201);
  const [{ pubkey }] = generated['keys'] as [{ pubkey: string }];
  found.publicKey = pubkey;
}

export async function vote(found: Found): Promise<void> {
  const path = `/api/v1/eth2/sign/${found.publicKey}`;
  const { publicKey = '' } = found;
  const epoch = latestEpoch();
  const signed = await demand(found, path, voteRequest(epoch), 200);
  checkFirstSignature({ epoch, publicKey, text: JSON.stringify(signed) });
  await demand(found, path, voteRequest(epoch, `0x${'99'.repeat(32)}`), 412);
}

async function seal(found: Found): Promise<void> {
  const [root = ''] = found.tokens;
  const sealed = await ask(found, '/api/v1/chamber/seal', { body: { reason: 'a test' }, token: root });
  assert.equal(sealed.status, 200, sealed.text);
  const refused = await ask(found, `/api/v1/eth2/sign/${found.publicKey}`, { body: voteRequest(latestEpoch()) });
  assert.equal(refused.status, 503, refused.text);
  assert(refused.text.includes('"reason":"sealed"'), refused.text);
}

/** With the token that was made last. */
async function demand(found: Found, path: string, body: object, status: number): Promise<Record<string, unknown>> {
  const answer = await ask(found, path, { body });
  assert.equal(answer.status, status, `${path}: ${answer.text}`);
  return status < 300 ? (JSON.parse(answer.text) as Record<string, unknown>) : {};
}

async function ask(
  { client, tokens }: Found,
  path: string,
  { body, token = tokens.at(-1) ?? '' }: { readonly body: object; readonly token?: string },
): Promise<{ readonly status: number; readonly text: string }> {
  assert(client !== undefined, 'nobody has connected');
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' };
  const answer = await client.post(path, JSON.stringify(body), headers);
  return { status: answer.status, text: answer.body.toString('utf8') };
}
