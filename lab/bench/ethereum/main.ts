// `make bench-ethereum`: the validators of a whole network (a million) on one signer, slot after slot on a clock of
// real length: every vote of the slot at its quarter, with complete EIP-3076 history in SQLite, and the other duties of
// Gloas. First in batches, then as single requests. The load generator shares the signer's cores.
//
// Usage: lab/bench/ethereum/main.ts [--keys N,N] [--slots N] [--warm-up N] [--mode batch|single] [--slot-seconds N]
//        [--batch N] [--connections N]

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { aggregateWithRandomness, PublicKey, Signature, verify } from '@chainsafe/blst';
import type { RunningSigner } from '../../../rehearsal/signer.ts';
import { deployKeys } from '../../../test/support/deployment.ts';
import { type TestKey, testKey } from '../../../test/support/requests.ts';
import { commits, cpuSeconds, peakResidentBytes, residentBytes } from '../measured-signer.ts';
import { countSyncs, treeOf } from '../peers/processes.ts';
import { svgOf } from '../plots.ts';
import { openClient, type RawClient } from '../raw-client.ts';
import { releasedProgram } from '../released.ts';
import { dutiesOf, GLOAS_EPOCH, SLOTS_PER_EPOCH, signingRootOf, votersOf } from './duties.ts';
import { type EthereumRun, linesOf, loadPlotOf, type SlotFigure, sharePlotOf } from './report.ts';
import { type Answered, runSlot } from './slot-load.ts';

const { values } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000000' },
    slots: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '2' },
    'slot-seconds': { type: 'string', default: '12' },
    mode: { type: 'string', default: 'both' },
    batch: { type: 'string', default: '2048' },
    connections: { type: 'string', default: '512' },
  },
});
const [SLOTS, WARM_UP] = [Number(values.slots), Number(values['warm-up'])];
const SLOT_SECONDS = Number(values['slot-seconds']);
const BATCH_CONNECTIONS = 8;
/** A file of keys may have a MiB. */
const KEYS_OF_A_FILE = 5_000;
/** Votes are kept for 512 epochs, and go together once the oldest is 64 older (specification/slashing.md#pruning). */
const [RETAINED_EPOCHS, GATHERED_EPOCHS] = [512, 64];
const FIRST_SLOT = (GLOAS_EPOCH + 2 * RETAINED_EPOCHS) * SLOTS_PER_EPOCH;
const RESULTS = join(import.meta.dirname, '../../../build/bench');

const modes = values.mode === 'both' ? (['batch', 'single'] as const) : ([modeOf(values.mode)] as const);
say(`${cpus()[0]?.model}, ${cpus().length} cores; Node ${process.version}`);
const program = releasedProgram();
const runs: EthereumRun[] = [];
for (const count of values.keys.split(',').map(Number)) {
  say(`deriving ${count} keys, a fifth of a millisecond each`);
  const keys = Array.from({ length: count }, (_, index) => testKey(index));
  for (const mode of modes) {
    const run = await measureNetwork(keys, mode);
    for (const line of linesOf(run)) say(line);
    runs.push(run);
  }
}
mkdirSync(RESULTS, { recursive: true });
writeFileSync(join(RESULTS, 'ethereum-share.svg'), svgOf(sharePlotOf(runs)));
writeFileSync(join(RESULTS, 'ethereum-load.svg'), svgOf(loadPlotOf(runs)));
say(`plots: ${RESULTS}/ethereum-share.svg, ethereum-load.svg`);

async function measureNetwork(keys: readonly TestKey[], mode: 'batch' | 'single'): Promise<EthereumRun> {
  const deployment = deployKeys([], {
    network: 'sepolia', // Gloas is scheduled there
    // All the batches of a slot wait at once.
    signing: { queue_buffer_size: Math.max(4_000, Math.ceil(keys.length / 8)) },
  });
  writeKeyFiles(join(deployment.folder, 'keys'), keys);
  const started = performance.now();
  const signer = await deployment.start({ program: [program], keepsLog: false });
  const readySeconds = (performance.now() - started) / 1000;
  try {
    say(`${mode}: ready after ${readySeconds.toFixed(1)} s, writing history`);
    const before = await writeHistory(signer, keys);
    const slots: SlotFigure[] = [];
    const batch = mode === 'batch' ? Number(values.batch) : 0;
    const clients = await connect(signer, mode === 'batch' ? BATCH_CONNECTIONS : Number(values.connections));
    say(`${WARM_UP + SLOTS} slots of ${SLOT_SECONDS} s begin: let nothing else run`);
    let startsAt = performance.now() + 1000;
    for (let number = 0; number < WARM_UP + SLOTS; number++) {
      const figure = await measureSlot(signer, deployment.folder, clients, {
        ...{ keys, slot: FIRST_SLOT + number, startsAt, batch },
      });
      if (number >= WARM_UP) slots.push(figure);
      startsAt += SLOT_SECONDS * 1000;
    }
    const syncs = await syncsOf(signer, clients, keys, batch);
    for (const client of clients) client.close();
    const asked = before + votesOf(keys, slots.length + WARM_UP + 1);
    await signer.stop();
    say('verifying every signature of the measured slots');
    const verified = verifyAll(slots.flatMap(({ answered }) => answered));
    const growth = prunedOf(deployment.folder, asked);
    return { keys: keys.length, mode, slotSeconds: SLOT_SECONDS, readySeconds, slots, verified, syncs, growth };
  } finally {
    await signer.kill();
    rmSync(deployment.folder, { recursive: true, force: true });
  }
}

function writeKeyFiles(folder: string, keys: readonly TestKey[]): void {
  for (let from = 0; from < keys.length; from += KEYS_OF_A_FILE) {
    const documents = keys
      .slice(from, from + KEYS_OF_A_FILE)
      .map(({ secret }) => `type: file-raw\nkeyType: BLS\nprivateKey: "${secret}"\n`);
    writeFileSync(join(folder, `test-keys-${from}.yaml`), documents.join('---\n'));
  }
}

/**
 * The votes of a signer that has run for months: in each measured slot as many become too old as are signed, because a
 * sixty-fourth of its voters has those of 65 epochs to be deleted. As fast as the signer takes them.
 *
 * @returns how many there were
 */
async function writeHistory(signer: RunningSigner, keys: readonly TestKey[]): Promise<number> {
  const epochs = Math.ceil((WARM_UP + SLOTS + 1) / SLOTS_PER_EPOCH);
  let written = 0;
  for (let epoch = 0; epoch < GATHERED_EPOCHS + epochs; epoch++) {
    const clients = await connect(signer, BATCH_CONNECTIONS); // those of an epoch ago may have been idle for too long
    for (let place = 0; place < SLOTS_PER_EPOCH; place++) {
      const slot = FIRST_SLOT + (epoch - RETAINED_EPOCHS - GATHERED_EPOCHS - 1) * SLOTS_PER_EPOCH + place;
      const votes = dutiesOf(keys, slot)
        .filter(({ kind }) => kind === 'vote')
        .map((duty) => ({ ...duty, keys: oldVotersOf(duty.keys, epoch, epochs) }));
      const now = { startsAt: performance.now(), slotMs: 0, batch: Number(values.batch) };
      const { failures } = await runSlot(clients, votes, now);
      if (Object.keys(failures).length > 0) throw new Error(`history was refused: ${JSON.stringify(failures)}`);
      written += votes.reduce((sum, duty) => sum + duty.keys.length, 0);
    }
    for (const client of clients) client.close();
  }
  return written;
}

/** In one epoch everybody; else those whose votes become old together in one of the measured epochs. */
function oldVotersOf(voters: readonly TestKey[], epoch: number, measuredEpochs: number): readonly TestKey[] {
  if (epoch === GATHERED_EPOCHS) return voters;
  const size = Math.ceil(voters.length / GATHERED_EPOCHS);
  const [from, to] = [Math.max(0, epoch - GATHERED_EPOCHS), Math.min(epoch + 1, measuredEpochs)];
  return voters.slice(from * size, to * size);
}

function votesOf(keys: readonly TestKey[], slots: number): number {
  return Array.from({ length: slots }, (_, number) => votersOf(keys, FIRST_SLOT + number)).flat().length;
}

async function measureSlot(
  signer: RunningSigner,
  folder: string,
  clients: readonly RawClient[],
  { keys, slot, startsAt, batch }: { keys: readonly TestKey[]; slot: number; startsAt: number; batch: number },
): Promise<SlotFigure> {
  const duties = dutiesOf(keys, slot);
  await pause(Math.max(0, startsAt - performance.now()));
  const before = { cpu: cpuSeconds(signer), written: writtenBytes(signer), commits: await commits(signer) };
  const result = await runSlot(clients, duties, { startsAt, slotMs: SLOT_SECONDS * 1000, batch });
  await pause(Math.max(0, startsAt + SLOT_SECONDS * 1000 - 100 - performance.now()));
  return {
    ...result,
    cpuSeconds: cpuSeconds(signer) - before.cpu,
    writtenBytes: writtenBytes(signer) - before.written,
    commits: (await commits(signer)) - before.commits,
    residentBytes: residentBytes(signer),
    peakResidentBytes: peakResidentBytes(signer),
    storeBytes: storeBytes(folder),
  };
}

/** In one more slot, which is not timed: strace stops the signer at every call. */
async function syncsOf(signer: RunningSigner, clients: readonly RawClient[], keys: readonly TestKey[], batch: number) {
  const duties = dutiesOf(keys, FIRST_SLOT + WARM_UP + SLOTS);
  let signatures = 0;
  const syncs = await countSyncs(treeOf(signer.pid), async () => {
    const { latencies } = await runSlot(clients, duties, { startsAt: performance.now(), slotMs: 1000, batch });
    signatures = Object.values(latencies).flat().filter(Number.isFinite).length;
  });
  if (syncs === undefined) return 'not counted: strace is missing or may not attach';
  return `${syncs.syncCalls}, ${syncs.syncedWrites} in a slot of ${signatures} signatures that was not timed`;
}

async function connect(signer: RunningSigner, count: number): Promise<RawClient[]> {
  const port = Number(new URL(signer.url).port);
  return Promise.all(Array.from({ length: count }, () => openClient({ port, tls: false })));
}

function storeBytes(folder: string): number {
  const files = readdirSync(folder).filter((name) => name.startsWith('slashing_protection.sqlite'));
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

function writtenBytes({ pid }: RunningSigner): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? Number.NaN);
}

function prunedOf(folder: string, signed: number): string {
  const database = new DatabaseSync(join(folder, 'slashing_protection.sqlite'), { readOnly: true });
  const [row] = database.prepare('SELECT count(*) AS votes FROM attestations').all();
  database.close();
  return `${Number(row?.['votes'])} votes are kept of ${signed}`;
}

/**
 * Verifies the signatures of one message together: their sum, each times a random factor of 64 bits, so that no wrong
 * one makes up for another.
 *
 * @returns how many there were; throws at the first that is wrong
 */
function verifyAll(answered: readonly Answered[]): number {
  let verified = 0;
  for (const [message, answers] of Map.groupBy(answered, ({ message }) => message)) {
    const root = signingRootOf(message);
    const signed = answers.flatMap(signaturesOf);
    const { pk, sig } = aggregateWithRandomness(
      signed.map(({ publicKey, signature }) => ({
        pk: PublicKey.fromHex(publicKey),
        sig: Buffer.from(signature.slice(2), 'hex'),
      })),
    );
    if (!verify(root, pk, sig)) throw new Error(wrongOf(message, root, signed));
    verified += signed.length;
  }
  return verified;
}

interface Signed {
  readonly publicKey: string;
  readonly signature: string;
}

function signaturesOf({ keys, body }: Answered): Signed[] {
  const answers = [JSON.parse(body)].flat() as { readonly signature: string }[];
  if (answers.length !== keys.length) throw new Error(`${answers.length} signatures for ${keys.length} keys`);
  return keys.map(({ publicKey }, index) => ({ publicKey, signature: answers[index]?.signature ?? '' }));
}

function wrongOf(message: Answered['message'], root: Uint8Array, signed: readonly Signed[]): string {
  const wrong = signed.filter(
    ({ publicKey, signature }) => !verify(root, PublicKey.fromHex(publicKey), Signature.fromHex(signature, true)),
  );
  const what = `signatures of one ${String(message['type'])}`;
  return `${wrong.length} ${what} do not verify, the first is that of ${wrong[0]?.publicKey}`;
}

function modeOf(text: string): 'batch' | 'single' {
  if (text === 'batch' || text === 'single') return text;
  throw new Error(`no mode ${text}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
