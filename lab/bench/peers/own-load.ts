// strongroom alone, where Go is missing: single votes and batches over mutual TLS from a client in Node, whose figures
// are not to be put beside those of the client in Go. Every signature is verified over the root that the conformance
// kit computes without the signer's code.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { expectedRoot } from '../../../test/expected/expected-root.ts';
import { attestation, MAINNET_ROOT, rootOf, type TestKey } from '../../../test/support/requests.ts';
import { median } from '../bars.ts';
import { releasedProgram } from '../released.ts';
import { type Certificates, makeCertificates } from './certificates.ts';
import { type Peer, startStrongroom } from './peers.ts';
import { cpuSecondsOf } from './processes.ts';

/** Mainnet, in fulu. */
const FIRST_EPOCH = 411_400;
const CHAIN = {
  genesisValidatorsRoot: MAINNET_ROOT,
  slotsPerEpoch: 32,
  forks: [{ name: 'fulu', version: '0x06000000', epoch: 0 }],
};

interface Options {
  readonly rounds: number;
  readonly parallel: number;
  readonly batch: number;
  readonly say: (line: string) => void;
}

export async function measureOwnAlone(keys: readonly TestKey[], options: Options): Promise<void> {
  const program = releasedProgram();
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-peers-'));
  const certificates = makeCertificates(folder);
  try {
    for (const store of ['sqlite', 'postgres'] as const) {
      const peer = await startStrongroom(program, keys, store, certificates);
      try {
        await measureStore(keys, peer, certificates, options);
      } finally {
        await peer.stop();
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureStore(keys: readonly TestKey[], peer: Peer, certificates: Certificates, options: Options) {
  const { rounds, parallel, batch, say } = options;
  const agent = new Agent({
    ...{ keepAlive: true, maxSockets: parallel, minVersion: 'TLSv1.3', ca: readFileSync(certificates.authority) },
    ...{ cert: readFileSync(certificates.client.cert), key: readFileSync(certificates.client.key) },
  });
  let epoch = FIRST_EPOCH;
  for (const size of [1, batch]) {
    const rates: number[] = [];
    const cpus: number[] = [];
    let verified = 0;
    for (let round = 0; round <= rounds; round++) {
      const vote = attestation({ source: epoch, target: epoch + 1, head: rootOf(1) });
      epoch += 1;
      const groups = Array.from({ length: Math.ceil(keys.length / size) }, (_, group) =>
        keys.slice(group * size, (group + 1) * size).map(({ publicKey }) => publicKey),
      );
      const [cpu, started] = [cpuSecondsOf(peer.pids()), performance.now()];
      const signatures = (
        await Promise.all(groups.map((group) => sign(agent, peer.options.URL ?? '', group, vote, size > 1)))
      ).flat();
      const seconds = (performance.now() - started) / 1000;
      verified += verifyAll(keys, vote, signatures);
      if (round === 0) continue; // the warm-up
      rates.push(keys.length / seconds);
      cpus.push(((cpuSecondsOf(peer.pids()) - cpu) * 1e6) / keys.length);
    }
    say(
      `${peer.name}, ${size === 1 ? 'single votes' : `batches of ${size} keys`}: ${median(rates).toFixed(0)} a second, ` +
        `${median(cpus).toFixed(0)} us of CPU each; ${verified} signatures, every one verified`,
    );
  }
  agent.destroy();
}

/** Throws at the first that is wrong. */
function verifyAll(keys: readonly TestKey[], vote: Record<string, unknown>, signatures: readonly string[]): number {
  const root = expectedRoot({ ...vote, type: 'ATTESTATION' }, CHAIN);
  for (const [index, { publicKey }] of keys.entries()) {
    const signature = Signature.fromHex(signatures[index] ?? '', true);
    if (!verify(root, PublicKey.fromHex(publicKey), signature)) throw new Error(`key ${index}: a wrong signature`);
  }
  return keys.length;
}

function sign(agent: Agent, url: string, keys: readonly string[], vote: object, isBatch: boolean): Promise<string[]> {
  const path = isBatch ? '/api/v1/eth2/sign' : `/api/v1/eth2/sign/${keys[0]}`;
  const body = JSON.stringify(isBatch ? { identifiers: keys, signing_request: vote } : vote);
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  return new Promise((resolve, reject) => {
    request(`${url}${path}`, { method: 'POST', agent, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => (text += part));
      answer.once('error', reject).once('end', () => {
        if (answer.statusCode !== 200) return reject(new Error(`${answer.statusCode}: ${text.slice(0, 200)}`));
        const answers = (isBatch ? JSON.parse(text) : [JSON.parse(text)]) as { readonly signature?: string }[];
        resolve(answers.map(({ signature }) => signature ?? ''));
      });
    })
      .once('error', reject)
      .end(body);
  });
}
