// Participants of a test: HTTPS servers of their own, with real shares of keys that the native core has split. They
// sign the digest of what they are asked, unless a test says what they do instead. And a combiner of the program's own
// in front of them. What a test starts is ended after it.

import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { SecretKey } from '@chainsafe/blst';
import { afterEach, beforeEach } from 'vitest';
import { type CombinerOptions, runCombiner } from '../../../operator/distributed/combiner.ts';
import type { ParticipantSettings } from '../../../operator/distributed/participants.ts';
import { type Account, accountOf } from '../../../signer/api/distributed.ts';
import { type Addon, loadAddon } from '../../../signer/native/load.ts';
import { addonForTests } from '../../support/addon.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { ownAddress } from '../../support/own-address.ts';

const isBuilt = addonForTests();
export const native = (isBuilt ? loadAddon() : undefined) as Addon;

beforeEach(({ skip }) => skip(!isBuilt, 'a C compiler'));

const folder = mkdtempSync(join(tmpdir(), 'strongroom-combiner-'));
const certificate = makeCertificate(folder, 'participant');
export const [cert, key] = [readFileSync(certificate.cert), readFileSync(certificate.key)];
rmSync(folder, { recursive: true });

let ending: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ending.toReversed()) await end();
  ending = [];
});

export interface TestShare {
  readonly account: Account;
  readonly secret: SecretKey;
}

export interface DistributedKey {
  readonly publicKey: string;
  readonly whole: SecretKey;
  /** Of the participants 1, 2 and so on. */
  readonly shares: readonly TestShare[];
}

/** @param set the secret of the key stays; the polynomial is another */
export function distribute(threshold: number, participants: number, label = 'key', set = 1): DistributedKey {
  const whole = SecretKey.fromKeygen(createHash('sha256').update(label).digest());
  const [shares, commitments] = [new Uint8Array(32 * participants), new Uint8Array(48 * threshold)];
  native.splitKey(whole.toBytes(), randomBytes(48 * (threshold - 1)), shares, commitments);
  const hex = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex')}`;
  const points = Array.from({ length: threshold }, (_, at) => hex(commitments.subarray(48 * at, 48 * at + 48)));
  const publicKey = points[0] ?? '';
  const made = Array.from({ length: participants }, (_, at): TestShare => {
    const secret = SecretKey.fromBytes(shares.subarray(32 * at, 32 * at + 32));
    const share = {
      compositePublicKey: publicKey,
      publicKey: hex(secret.toPublicKey().toBytes()),
      participantId: at + 1,
    };
    return { secret, account: accountOf({ ...share, threshold, participants, set, commitments: points }) };
  });
  return { publicKey, whole, shares: made };
}

export interface AskedFor {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

/** @returns true when it has answered, or never will */
export type Behaviour = (asked: AskedFor, response: ServerResponse, of: FakeParticipant) => boolean | Promise<boolean>;

export class FakeParticipant {
  readonly name: string;
  readonly token: string;
  readonly asked: AskedFor[] = [];
  shares: readonly TestShare[];
  /** Instead of signing. */
  behave: Behaviour = () => false;
  #server: Server | undefined;
  #port = 0;

  constructor(name: string, shares: readonly TestShare[]) {
    this.name = name;
    this.token = `sr_client_secret_of_${name}`;
    this.shares = shares;
  }

  /** Those for signatures. */
  get votes(): readonly AskedFor[] {
    return this.asked.filter(({ method }) => method === 'POST');
  }

  async start(): Promise<void> {
    const server = createServer({ cert, key }, (request, response) => void this.#answer(request, response));
    server.listen(this.#port, ownAddress(6));
    await once(server, 'listening');
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  settings(): ParticipantSettings {
    const url = new URL(`https://${ownAddress(6)}:${this.#port}`);
    const peer = { url, trustedCertificates: cert, serverName: 'localhost', attestation: undefined };
    return { name: this.name, peer, token: this.token };
  }

  sign(publicKey: string, message: unknown) {
    const share = this.shares.find(({ account }) => account.composite_public_key === publicKey);
    if (share === undefined) return undefined;
    const root = rootOf(message);
    return {
      participant_id: share.account.participant_id,
      signing_root: hexOf(root),
      signature: hexOf(share.secret.sign(root).toBytes()),
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    const { method = '', url: path = '', headers } = request;
    const asked = { method, path, headers, body: await text(request).catch(() => '') };
    this.asked.push(asked);
    if (headers.authorization !== `Bearer ${this.token}` && path !== '/healthcheck')
      return refusing(response, 403, 'invalid_token');
    if (await this.behave(asked, response, this)) return;
    if (path === '/healthcheck') return answering(response, 200, { status: 'UP' });
    if (path === '/api/v1/eth2/distributed/accounts')
      return answering(
        response,
        200,
        this.shares.map(({ account }) => account),
      );
    const message = JSON.parse(asked.body) as Record<string, unknown>;
    if (path === '/api/v1/eth2/distributed/sign') {
      const { identifiers, signing_request } = message;
      const error = { code: 404, reason: 'unknown_key', message: 'not here' };
      const results = (identifiers as string[]).map((identifier) => ({
        identifier,
        ...(this.sign(identifier, signing_request) ?? { error }),
      }));
      return answering(response, 200, results);
    }
    const signed = this.sign(path.slice(path.lastIndexOf('/') + 1), message);
    return signed === undefined ? refusing(response, 404, 'unknown_key') : answering(response, 200, signed);
  }
}

export function answering(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

export function refusing(response: ServerResponse, code: number, reason: string): void {
  answering(response, code, { code, reason, message: 'refused', request_id: 'of the participant' });
}

export function hexOf(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

export function rootOf(message: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(message)).digest();
}

/** What a signer that has the whole key would answer. */
export function expected(of: DistributedKey, message: unknown): string {
  return hexOf(of.whole.sign(rootOf(message)).toBytes());
}

/** Of these keys every share, each at a participant of its own. Started, unless the test does. */
export async function startParticipants(keys: readonly DistributedKey[], isStarted = true): Promise<FakeParticipant[]> {
  const count = Math.max(...keys.map(({ shares }) => shares.length));
  const participants = Array.from(
    { length: count },
    (_, at) =>
      new FakeParticipant(
        `p${at + 1}`,
        keys.flatMap(({ shares }) => shares[at] ?? []),
      ),
  );
  for (const participant of participants) {
    ending.push(() => participant.stop());
    await participant.start();
    if (!isStarted) await participant.stop();
  }
  return participants;
}

export interface RunningCombiner {
  readonly url: string;
  readonly lines: readonly string[];
  readonly ended: Promise<unknown>;
  stop(): void;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>;
  get(path: string): Promise<Reply>;
  sign(of: DistributedKey, message: unknown): Promise<Reply>;
  metric(name: string): Promise<number>;
}

export interface Reply {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
}

export async function startCombiner(
  participants: readonly FakeParticipant[],
  options: Partial<CombinerOptions> = {},
): Promise<RunningCombiner> {
  const stopping = new AbortController();
  const lines: string[] = [];
  const { promise: listening, resolve: onListening } = Promise.withResolvers<string>();
  const all: CombinerOptions = {
    participants: participants.map((participant) => participant.settings()),
    addon: native,
    ...{ host: ownAddress(4), port: 0, loopback: true, timeoutSeconds: 20 },
    ...{ maxConnections: 8, maxWaiting: 2000, maxBodyBytes: 100_000 },
    log: (line) => lines.push(line),
    onListening,
    ...options,
  };
  const ended = runCombiner(all, stopping.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  ending.push(async () => {
    stopping.abort();
    await ended;
  });
  const url = await Promise.race([listening, ended.then(String)]);
  const ask = async (path: string, init: RequestInit): Promise<Reply> => {
    const response = await fetch(`${url}${path}`, { ...init, headers: { connection: 'close', ...init.headers } });
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  };
  const post = (path: string, body: unknown, headers = {}): Promise<Reply> =>
    ask(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  // Then all that are there have listed their shares.
  await ask('/healthcheck', {});
  return {
    ...{ url, lines, ended, post },
    stop: () => stopping.abort(),
    get: (path) => ask(path, {}),
    sign: (of, message) => post(`/api/v1/eth2/sign/${of.publicKey}`, message, { accept: 'text/plain' }),
    async metric(name) {
      const found = (await ask('/metrics', {})).text
        .split('\n')
        .find((line) => line.startsWith(`svc_combiner_${name} `));
      return Number(found?.split(' ').at(-1));
    },
  };
}

// What they do instead of signing.

/** Only for requests to sign. */
export function whenSigning(behaviour: Behaviour): Behaviour {
  return (asked, response, of) => asked.method === 'POST' && behaviour(asked, response, of);
}

export const never: Behaviour = whenSigning(() => true);
export const away: Behaviour = (_, response) => {
  response.destroy();
  return true;
};

/** So that all of them are among the first that come. */
export function lastAfter(last: FakeParticipant, first: readonly FakeParticipant[]): void {
  const answered = first.map((participant) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = participant.behave;
    participant.behave = (asked, response, of) => {
      if (asked.method === 'POST') response.once('close', resolve);
      return before(asked, response, of);
    };
    return promise;
  });
  last.behave = whenSigning(async () => {
    await Promise.all(answered);
    return false;
  });
}

/** It answers when so many have asked. */
export function together(participant: FakeParticipant, count: number): void {
  const { promise, resolve } = Promise.withResolvers<void>();
  const before = participant.behave;
  participant.behave = async (asked, response, of) => {
    if (asked.method !== 'POST') return before(asked, response, of);
    if (participant.votes.length >= count) resolve();
    await promise;
    return before(asked, response, of);
  };
}
