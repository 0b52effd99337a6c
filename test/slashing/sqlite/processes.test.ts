// The SQLite store and whole processes: one at a time, killed at any moment, nothing that was released is forgotten.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import type { SlashableMessage } from '../../../signer/slashing/types.ts';
import { sized } from '../../support/scale.ts';
import { block, checkOne, MAIN_ROOT, quietLog, verdictName } from '../../support/slashing.ts';
import { areSlashable } from '../../support/slashing-model.ts';

const BURST = fileURLToPath(new URL('../../support/slashing-burst.ts', import.meta.url));
const KILL_ROUNDS = sized(4, 12);

let folder: string;
let path: string;
let releasedPath: string;
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-processes-'));
  path = join(folder, 'slashing_protection.sqlite');
  releasedPath = join(folder, 'released');
});
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  rmSync(folder, { recursive: true });
});

function burst(firstSlot: number, name: string): ChildProcess {
  const child = spawn(process.execPath, [BURST, path, releasedPath, String(firstSlot), name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Kill a child as soon as it released so many messages; what all children released until then. */
async function releasedUntil(child: ChildProcess, killAfter: number): Promise<SlashableMessage[]> {
  let count = 0;
  child.stdout?.on('data', (dots: Buffer) => {
    count += dots.length;
    if (count >= killAfter) child.kill('SIGKILL');
  });
  await once(child, 'close');
  return readFileSync(releasedPath, 'utf8').split('\n').flatMap(parsed);
}

/** A kill may tear the line that is being written, and then its message is not released yet. */
function parsed(line: string): SlashableMessage[] {
  if (!line.endsWith('}')) return [];
  const message = JSON.parse(line) as SlashableMessage & { signingRoot: string };
  return [{ ...message, signingRoot: Buffer.from(message.signingRoot, 'hex') }];
}

function slashablePairs(released: readonly SlashableMessage[]): [SlashableMessage, SlashableMessage][] {
  const byKey = Map.groupBy(released, ({ publicKey }) => publicKey);
  return [...byKey.values()].flatMap((own) =>
    own.flatMap((one, index) =>
      own
        .slice(index + 1)
        .filter((other) => areSlashable(one, other))
        .map((other): [SlashableMessage, SlashableMessage] => [one, other]),
    ),
  );
}

function highestSlot(released: readonly SlashableMessage[]): number {
  return released.reduce((highest, one) => Math.max(highest, one.kind === 'block' ? one.slot : 0), 0);
}

describe('one process at a time', () => {
  it('a second process is refused with a clear message, and so is a second opening in this one', async () => {
    const backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
    const second = spawnSync(process.execPath, [BURST, path, releasedPath, '1', 'second'], { encoding: 'utf8' });
    expect(second.status).not.toBe(0);
    expect(second.stdout).toBe('');
    expect(second.stderr).toMatch(/in use by another process/);
    await expect(openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog })).rejects.toThrow(
      /in use by another process/,
    );
    expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
    await backend.close();
  });

  it('the lock of a process that was killed is gone with it', async () => {
    const child = burst(1, 'killed');
    expect((await releasedUntil(child, 1)).length).toBeGreaterThan(0);
    const backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
    await backend.close();
  });
});

describe('kill -9 in the middle of bursts', () => {
  it(
    `${KILL_ROUNDS} processes, each killed and followed by one that asks for other messages at the same slots: ` +
      'no two released messages are slashable',
    async () => {
      let released: SlashableMessage[] = [];
      for (let round = 0; round < KILL_ROUNDS; round += 1) {
        const child = burst(Math.max(1, highestSlot(released) - 3), `round ${round}`);
        const known = released.length;
        released = await releasedUntil(child, 5 + ((round * 37) % 90));
        expect(released.length).toBeGreaterThan(known);
      }
      expect(released.length).toBeGreaterThan(KILL_ROUNDS * 20);
      expect(slashablePairs(released)).toEqual([]);

      // And what was released is in the history, every single one.
      const backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
      for (const message of released) {
        expect([message, verdictName(await checkOne(backend, message))]).toEqual([message, 'repeat']);
      }
      await backend.close();
    },
  );

  it('the checker itself finds slashable pairs where there are some', () => {
    expect(slashablePairs([block(1, 5, 'a'), block(2, 5, 'b'), block(1, 5, 'b')])).toHaveLength(1);
  });
});
