// Distributed keys for real: `operator keys split`, a signer for each participant with a store of its own, and a
// combiner before them, all processes of their own. Between combiner and signer is a proxy that can lie and that keeps
// its port while its signer is killed, restored from a copy of its folder, or frozen.

import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { stringify } from 'yaml';
import {
  cleanEnvironment,
  kill,
  type RunningSigner,
  runStrongroom,
  startSigner,
  tracked,
} from '../../rehearsal/signer.ts';
import { FULL_ACCESS } from './deployment.ts';
import { encryptKeystore } from './keys.ts';
import { TEST_TOKEN, type TestKey } from './requests.ts';

/** A SQLite file unless it says otherwise. */
export interface ParticipantStore {
  readonly antiSlashing?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** A participant, numbered from 1, with its signer. */
export class Participant {
  readonly folder: string;
  readonly #config: Record<string, unknown>;
  readonly #env: Readonly<Record<string, string>>;
  readonly #lines: Record<string, unknown>[] = [];
  #proxy: Server | undefined;
  #signer: RunningSigner | undefined;
  lies = false;

  constructor(folder: string, shares: string, config: Readonly<Record<string, unknown>>, store: ParticipantStore) {
    this.folder = folder;
    this.#config = {
      static_auth: { policies: [FULL_ACCESS], tokens: [{ secret: TEST_TOKEN, policies: ['full'] }] },
      key_sources: { filesystem: { keystores: { path: shares, passwords_path: shares } } },
      ...config,
      anti_slashing: { path: join(folder, 'slashing.sqlite'), ...store.antiSlashing },
    };
    this.#env = store.env ?? {};
    mkdirSync(folder, { recursive: true });
  }

  get signer(): RunningSigner {
    if (this.#signer === undefined) throw new Error('the participant was never started');
    return this.#signer;
  }

  /** Of all its processes. */
  get log(): readonly Record<string, unknown>[] {
    return [...this.#lines, ...(this.#signer?.log ?? [])];
  }

  async start(): Promise<void> {
    this.#lines.push(...(this.#signer?.log ?? []));
    this.#signer = undefined;
    this.#signer = await startSigner({ folder: this.folder, config: this.#config, env: this.#env });
  }

  async kill(): Promise<void> {
    await this.signer.kill();
  }

  copyFolder(): string {
    const copy = `${this.folder}.copy`;
    rmSync(copy, { recursive: true, force: true });
    cpSync(this.folder, copy, { recursive: true });
    return copy;
  }

  /** Of a signer that is not running. */
  restoreFolder(copy: string): void {
    rmSync(this.folder, { recursive: true });
    cpSync(copy, this.folder, { recursive: true });
  }

  freeze(): void {
    process.kill(this.signer.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.signer.pid, 'SIGCONT');
  }

  /** @returns the address that stays the same */
  async listen(): Promise<string> {
    const proxy = createServer((incoming, outgoing) => {
      if (this.#signer === undefined) return void outgoing.destroy(); // it starts
      const { port, hostname } = new URL(this.#signer.url);
      const { method, url: path, headers } = incoming;
      const asked = request({ hostname, port, method, path, headers, agent: false });
      asked.on('error', () => outgoing.destroy());
      outgoing.on('close', () => asked.destroy());
      asked.on('response', (answer) => {
        if (this.lies && method === 'POST') return void this.#lie(answer, outgoing);
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('error', () => outgoing.destroy()).pipe(outgoing);
      });
      incoming.on('error', () => asked.destroy()).pipe(asked);
    });
    proxy.listen(0, '127.0.0.1');
    await new Promise((resolve) => proxy.once('listening', resolve));
    this.#proxy = proxy;
    return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  }

  /** A signature of the right form by another key. */
  async #lie(answer: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const text = (await buffer(answer)).toString('utf8');
    outgoing.end(text.replaceAll(/"signature":"0x[0-9a-f]{192}"/g, `"signature":"${FOREIGN_SIGNATURE}"`));
  }

  async end(): Promise<void> {
    this.#proxy?.closeAllConnections();
    this.#proxy?.close();
    if (this.#signer !== undefined) {
      this.thaw();
      await this.#signer.stop();
    }
  }
}

/** The generator of G2, compressed: a point of the group that no key has signed with. */
const FOREIGN_SIGNATURE =
  '0x93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e' +
  '024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8';

export interface Combiner {
  readonly url: string;
  readonly pid: number;
  /** What it has logged. */
  lines(): readonly string[];
  end(): Promise<void>;
}

export async function startCombiner(participantsFile: string): Promise<Combiner> {
  const program = join(import.meta.dirname, '../../bin/strongroom');
  const args = ['operator', 'tunnel', '--participants', participantsFile, '--listen', '127.0.0.1:0'];
  const child = tracked(spawn(program, args, { env: cleanEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] }));
  let text = '';
  const { promise: url, resolve, reject } = Promise.withResolvers<string>();
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const [, listening] = /listening on (http:\S+?);?\s/.exec(text) ?? [];
    if (listening !== undefined) resolve(listening);
  });
  child.once('close', () => reject(new Error(`the combiner ended: ${text}`)));
  return { url: await url, pid: child.pid ?? 0, lines: () => text.split('\n').slice(0, -1), end: () => kill(child) };
}

export interface DistributedOptions {
  readonly keys: readonly TestKey[];
  readonly threshold: number;
  /** One for each participant. */
  readonly stores: readonly ParticipantStore[];
  readonly config?: Readonly<Record<string, unknown>>;
}

export interface DistributedWorld extends AsyncDisposable {
  readonly participants: readonly Participant[];
  readonly participantsFile: string;
  readonly combiner: Combiner;
}

export async function startDistributed(options: DistributedOptions): Promise<DistributedWorld> {
  const { stores, threshold, config = {} } = options;
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-distributed-'));
  for (const key of options.keys) await split(folder, key, threshold, stores.length);
  const participants = stores.map((store, index) => {
    const name = `participant-${index + 1}`;
    return new Participant(join(folder, 'signers', name), join(folder, 'shares', name), config, store);
  });
  await Promise.all(participants.map((participant) => participant.start()));
  const urls = await Promise.all(participants.map((participant) => participant.listen()));
  const profiles = urls.map((signer_url, index) => [
    `participant-${index + 1}`,
    { signer_url, token: TEST_TOKEN, allow_plaintext_signer: true },
  ]);
  const participantsFile = join(folder, 'participants.yaml');
  writeFileSync(participantsFile, stringify({ profiles: Object.fromEntries(profiles) }), { mode: 0o600 });
  const combiner = await startCombiner(participantsFile);
  return {
    participants,
    participantsFile,
    combiner,
    async [Symbol.asyncDispose]() {
      await combiner.end();
      await Promise.all(participants.map((participant) => participant.end()));
      rmSync(folder, { recursive: true });
    },
  };
}

async function split(folder: string, { secret, publicKey }: TestKey, threshold: number, participants: number) {
  const [keystore, password] = [join(folder, `${publicKey}.json`), join(folder, 'password')];
  writeFileSync(keystore, JSON.stringify(encryptKeystore(Buffer.from(secret.slice(2), 'hex'), 'TEST')));
  writeFileSync(password, 'TEST\n');
  const { code, stderr } = await runStrongroom([
    ...['operator', 'keys', 'split', keystore, '--password-file', password, '--directory', join(folder, 'shares')],
    ...['--threshold', `${threshold}`, '--participants', `${participants}`],
  ]);
  if (code !== 0) throw new Error(`the key was not split: ${stderr}`);
}
