// How long an import of one key with very many entries holds up everybody else on this machine: the longest turn of the
// event loop, and the longest that a check of another key waits for its answer, beside those of as long a time without
// an import. Figures of a busy machine say nothing: the steps themselves are bounded by work (tests of each store). Run
// it with bin/pinned-node; set TMPDIR to the disk of interest; an argument says how many entries.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readInterchange } from '../../signer/slashing/interchange/file.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { block, checkOne, MAIN_ROOT, publicKeyOf, quietLog } from '../../test/support/slashing.ts';
import { openTestBackend } from '../../test/support/slashing-postgres.ts';

const ENTRIES = Number(process.argv[2] ?? 900_000);
const ROUNDS = 3;
const QUIET_MS = 2_000;
const ENTRIES_OF_A_PIECE = 500;

interface Longest {
  readonly turnMs: number;
  readonly stallMs: number;
}

async function* file(): AsyncGenerator<Buffer> {
  const metadata = { interchange_format_version: '5', genesis_validators_root: MAIN_ROOT };
  yield Buffer.from(
    `{"metadata":${JSON.stringify(metadata)},"data":[{"pubkey":"${publicKeyOf(1)}","signed_blocks":[],`,
  );
  yield Buffer.from('"signed_attestations":[');
  const signingRoot = `0x${'ab'.repeat(32)}`;
  for (let first = 0; first < ENTRIES; first += ENTRIES_OF_A_PIECE) {
    const length = Math.min(ENTRIES_OF_A_PIECE, ENTRIES - first);
    const votes = Array.from({ length }, (_, index) =>
      JSON.stringify({
        source_epoch: String(first + index),
        target_epoch: String(first + index + 1),
        signing_root: signingRoot,
      }),
    );
    yield Buffer.from((first === 0 ? '' : ',') + votes.join(','));
  }
  yield Buffer.from(']}]}');
}

/** Checks one after the other, of a key that the work does not touch, until the work is over. */
async function besides(backend: SlashingBackend, slot: { next: number }, work: Promise<unknown>): Promise<Longest> {
  const over = new AbortController();
  const longest = { turnMs: 0, stallMs: 0 };
  const done = work.finally(() => over.abort());
  const turns = async () => {
    for (let before = performance.now(); !over.signal.aborted; ) {
      await nextTurn();
      const now = performance.now();
      longest.turnMs = Math.max(longest.turnMs, now - before);
      before = now;
    }
  };
  const checks = async () => {
    for (; !over.signal.aborted; slot.next += 1) {
      const before = performance.now();
      const { kind } = await checkOne(backend, block(2, slot.next, 'a'));
      if (kind !== 'safe') throw new Error(`${kind} in the bench`);
      longest.stallMs = Math.max(longest.stallMs, performance.now() - before);
    }
  };
  await Promise.all([done, turns(), checks()]);
  return longest;
}

async function measure(name: string, open: () => Promise<SlashingBackend>): Promise<void> {
  for (let round = 1; round <= ROUNDS; round++) {
    const backend = await open();
    const slot = { next: 1 };
    await checkOne(backend, block(2, slot.next++, 'a'));
    const quiet = await besides(backend, slot, new Promise((resolve) => setTimeout(resolve, QUIET_MS)));
    const importing = await besides(backend, slot, backend.importHistories(readInterchange(file(), MAIN_ROOT)));
    await backend.close();
    const text = ({ turnMs, stallMs }: Longest) =>
      `longest turn ${turnMs.toFixed(1).padStart(6)} ms, longest check ${stallMs.toFixed(1).padStart(6)} ms`;
    console.log(`${name.padEnd(9)} round ${round}: without ${text(quiet)}; importing ${text(importing)}`);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'long-imports-'));
let files = 0;
await measure('sqlite', () => {
  files += 1;
  const options = { path: join(folder, `${files}.sqlite`), genesisValidatorsRoot: MAIN_ROOT };
  return openSqliteBackend({ ...options, integrityKey: Buffer.alloc(32, 1) }, { log: quietLog });
});
rmSync(folder, { recursive: true });
const server = await startPostgres();
await measure('postgres', async () => openTestBackend(server.url(await server.createDatabase())));
await server.close();
