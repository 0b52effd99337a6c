// The log that a signer keeps (signer/receipts/log.ts) in a real folder, judged by both verifiers as an auditor finds
// it.

import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeIdentity } from '../../common/receipts/identity.ts';
import { decodeBundle, headPath, tilePath } from '../../common/receipts/tiles.ts';
import { verifyReceipts } from '../../common/receipts/verify.ts';
import { receiptsFolder } from '../../service/receipts-folder.ts';
import { openReceiptLog, ReceiptLog, type ReceiptLogOptions, type ReceiptLogParts } from '../../signer/receipts/log.ts';
import type { ReceiptStorage } from '../../signer/receipts/storage.ts';
import { findPython } from '../support/needs.ts';
import { recordingLog } from '../support/recording-log.ts';
import { sized } from '../support/scale.ts';
import { testEntry } from './logs.ts';

const PROGRAM = fileURLToPath(new URL('../../docs/examples/verify_receipts.py', import.meta.url));
const OPTIONS = { intervalSeconds: 60, maxWaitingEntries: 2000, required: false, retentionDays: null } as const;
const GENESIS = `0x${'d8'.repeat(32)}`;
const python = findPython('cryptography');

let folder: string;
let nowMs: number;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'strongroom-log-')), 'receipts');
  nowMs = Date.parse('2026-11-25T12:00:00Z');
});

afterEach(() => {
  rmSync(join(folder, '..'), { recursive: true });
});

const clock = { now: () => nowMs, monotonic: () => nowMs };

async function start(options: ReceiptLogOptions = OPTIONS): Promise<ReceiptLog> {
  nowMs += 1000;
  return openReceiptLog(options, partsOf(folder));
}

function partsOf(path: string): ReceiptLogParts {
  return {
    genesisValidatorsRoot: GENESIS,
    attest: undefined,
    storage: receiptsFolder(path),
    facts: () => ({ slashing: { store: 'sqlite:5f1c', revision: '1' }, latch: null, auth_revision: null }),
    clock,
    log: recordingLog(),
  };
}

function decide(log: ReceiptLog, count: number): void {
  for (let index = 0; index < count; index++) log.record(testEntry(1, log.size));
  nowMs += 60_000;
}

function filesOf(boot: string, path: string): string[] {
  return readdirSync(join(folder, boot, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /^\d+$/.test(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'));
}

function entriesOf(boot: string, size: number): Buffer[] {
  const entries: Buffer[] = [];
  for (let index = 0; entries.length < size; index++) {
    const width = Math.min(256, size - entries.length);
    entries.push(...(decodeBundle(readFileSync(join(folder, boot, tilePath('entries', index, width)))) ?? []));
  }
  return entries;
}

/** What both verifiers find in the folder. */
function judged(...logs: readonly ReceiptLog[]): { verdict: string; faults: string[] } {
  const boots = logs.map(({ boot, size }) => ({
    identity: readFileSync(join(folder, boot, 'identity'), 'utf8').trimEnd(),
    heads: filesOf(boot, 'heads'),
    entries: entriesOf(boot, size),
  }));
  const { verdict, findings } = verifyReceipts(boots, () => false);
  const faults = [...new Set(findings.map(({ fault }) => fault))].toSorted();
  if (python !== undefined) {
    const folders = logs.map(({ boot }) => join(folder, boot));
    const { stdout } = spawnSync(python, [PROGRAM, ...folders], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' },
    });
    const [said, ...lines] = stdout.trimEnd().split('\n  ');
    const found = [...new Set(lines.map((line) => line.split(': ')[1] ?? ''))].toSorted();
    expect({ verdict: said, faults: found }).toEqual({ verdict, faults });
  }
  return { verdict, faults };
}

describe('a log in a folder', () => {
  it('of a signer that ended in order shows nothing but that nobody attests it', async () => {
    const log = await start();
    decide(log, 300);
    await log.keepHead();
    decide(log, 400);
    await log.close();
    expect(log.size).toBe(700);
    expect(judged(log)).toEqual({ verdict: 'gaps', faults: ['unattested'] });
  });

  it('keeps every entry whole over a slow storage that fails now and then, although memory is used again', async () => {
    const real = receiptsFolder(folder);
    let writes = 0;
    let isWell = false;
    const slow: ReceiptStorage = {
      ...real,
      write: async (boot, files) => {
        await nextTurn(); // meanwhile the log goes on
        writes += 1;
        if (!isWell && writes % 9 === 4) throw new Error('no space left');
        await real.write(boot, files);
      },
    };
    const options = { ...OPTIONS, maxWaitingEntries: 1_000_000 };
    const log = await openReceiptLog(options, { ...partsOf(folder), storage: slow });
    for (let group = 0; group < 40; group++) {
      decide(log, 600);
      await nextTurn();
    }
    isWell = true;
    expect(await log.close()).toBe(true);
    expect(log.size).toBe(24_000);
    expect(judged(log)).toEqual({ verdict: 'gaps', faults: ['unattested'] });
  });

  it('begins with a head before the first decision', async () => {
    const log = await start();
    expect(readFileSync(join(folder, log.boot, 'checkpoint'), 'utf8').split('\n')[1]).toBe('0');
  });

  it('goes on through a restart and a crash, and says where decisions may lack', async () => {
    const first = await start();
    decide(first, 5);
    await first.close();
    const second = await start();
    decide(second, 5);
    await second.keepHead();
    const third = await start();
    decide(third, 5);
    await third.close();
    expect(judged(first, second, third)).toEqual({ verdict: 'gaps', faults: ['open_end', 'unattested'] });
  });

  it('that was put back to an earlier head before a restart is found to be rolled back', async () => {
    const first = await start();
    const whole = join(folder, first.boot);
    cpSync(whole, join(folder, '..', 'old'), { recursive: true });
    decide(first, 5);
    await first.close();
    renameSync(whole, join(folder, '..', 'new'));
    renameSync(join(folder, '..', 'old'), whole);
    const second = await start();
    await second.close();
    rmSync(whole, { recursive: true });
    renameSync(join(folder, '..', 'new'), whole);
    expect(judged(first, second)).toEqual({ verdict: 'broken', faults: ['rolled_back', 'unattested'] });
  });

  it('whose folder was taken away during a restart is found not to be named', async () => {
    const first = await start();
    decide(first, 5);
    await first.close();
    renameSync(join(folder, first.boot), join(folder, '..', 'away'));
    const second = await start();
    await second.close();
    renameSync(join(folder, '..', 'away'), join(folder, first.boot));
    expect(judged(first, second)).toEqual({ verdict: 'broken', faults: ['not_named', 'unattested'] });
  });

  it('says a gap when the heads of earlier starts cannot be read', async () => {
    const first = await start();
    await first.close();
    const checkpoint = join(folder, first.boot, 'checkpoint');
    const kept = readFileSync(checkpoint);
    writeFileSync(checkpoint, 'nothing');
    const second = await start();
    await second.close();
    writeFileSync(checkpoint, kept);
    expect(judged(first, second)).toEqual({ verdict: 'gaps', faults: ['unattested', 'unlinked'] });
  });
});

describe('a log whose storage was tampered with', () => {
  it('says a gap when a folder holds the head of another boot: it names no head twice', async () => {
    const first = await start();
    await first.close();
    cpSync(join(folder, first.boot), join(folder, '0'.repeat(32)), { recursive: true });
    const second = await start();
    rmSync(join(folder, '0'.repeat(32)), { recursive: true });
    await second.close();
    expect(judged(first, second)).toEqual({ verdict: 'gaps', faults: ['unattested', 'unlinked'] });
  });
});

describe('a log whose storage fails', () => {
  it('states no second head in place of one that it could not keep', async () => {
    const log = await start();
    decide(log, 3);
    const away = `${folder}-away`;
    renameSync(folder, away);
    writeFileSync(folder, 'no folder');
    expect(await log.keepHead()).toBe(false);
    decide(log, 3);
    rmSync(folder);
    renameSync(away, folder);
    expect(await log.keepHead()).toBe(true);
    await log.close();
    expect(readFileSync(join(folder, log.boot, headPath(1)), 'utf8').split('\n')[1]).toBe('3');
    expect(readFileSync(join(folder, log.boot, headPath(2)), 'utf8').split('\n')[1]).toBe('6');
    expect(judged(log)).toEqual({ verdict: 'gaps', faults: ['unattested'] });
  });

  it('is not kept any more after two intervals, says what a kill would take, and is kept with the next head', async () => {
    const log = await start();
    expect(log.isKept).toBe(true);
    for (let index = 0; index < 3; index++) log.record(testEntry(1, index));
    nowMs += 120_000;
    expect(log.uncovered).toEqual({ entries: 3, seconds: 120 });
    expect(log.isKept).toBe(true);
    nowMs += 1;
    expect(log.isKept).toBe(false);
    await log.keepHead();
    expect(log.isKept).toBe(true);
  });

  it('counts the time from when a head was begun: what came while the storage took it is in none', async () => {
    const log = await start();
    decide(log, 3);
    const kept = log.keepHead();
    await nextTurn(); // it is begun
    nowMs += 100_000;
    for (let index = 0; index < 2; index++) log.record(testEntry(1, index));
    await kept;
    expect(log.uncovered).toEqual({ entries: 2, seconds: 100 });
  });

  it('that no head covers for an hour counts what follows as lost, unless it is required', async () => {
    for (const required of [false, true]) {
      const log = await start({ ...OPTIONS, required });
      nowMs += 3_600_000;
      expect(log.record(testEntry(1, 0))).toBe(true);
      nowMs += 1;
      expect(log.record(testEntry(1, 1))).toBe(required);
      expect(log.lost).toBe(required ? 0 : 1);
      await log.keepHead();
      expect(log.record(testEntry(1, 2))).toBe(true);
      await log.close();
    }
  });

  it('keeps a bounded number of entries in memory, and counts the rest as lost in its heads', async () => {
    const log = await start({ ...OPTIONS, maxWaitingEntries: 500 });
    for (let index = 0; index < 600; index++) log.record(testEntry(1, index));
    expect(log.entriesInMemory).toBe(500);
    expect(log.lost).toBe(100);
    nowMs += 60_000;
    await log.keepHead();
    expect(log.entriesInMemory).toBe(500 - 256);
    await log.close();
    expect(judged(log)).toEqual({ verdict: 'gaps', faults: ['lost', 'unattested'] });
  });

  it('writes full tiles between heads, so that memory does not grow with the decisions of an interval', async () => {
    const log = await start({ ...OPTIONS, maxWaitingEntries: 20_000 });
    const count = sized(50_000, 10_000_000);
    let most = 0;
    while (log.size < count) {
      for (let index = 0; index < 256; index++) log.record(testEntry(1, log.size));
      await nextTurn();
      most = Math.max(most, log.entriesInMemory);
      // The storage is as fast as it is: a signer that waits for it has nothing to do here.
      while (log.entriesInMemory > 16_000) await nextTurn();
    }
    expect(log.lost).toBe(0);
    expect(most).toBeLessThan(17_000);
    await log.close();
    expect(readFileSync(join(folder, log.boot, 'checkpoint'), 'utf8').split('\n')[1]).toBe(String(log.size));
  });

  it('that is required loses nothing of what was under way when it was full, and says that it is not kept', async () => {
    const log = await start({ ...OPTIONS, maxWaitingEntries: 500, required: true });
    for (let index = 0; index < 600; index++) log.record(testEntry(1, index));
    expect(log.isKept).toBe(false);
    expect(log.lost).toBe(0);
    await log.keepHead();
    expect(log.isKept).toBe(true);
    await log.close();
    expect(log.size).toBe(600);
    expect(judged(log)).toEqual({ verdict: 'gaps', faults: ['unattested'] });
  });

  it('of a boot that runs twice, as two copies of one machine do, is found to be two logs', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const bytes = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
    const identity = { kind: 'unattested', publicKey: bytes, genesisValidatorsRoot: GENESIS, document: null } as const;
    const run = async (name: string, seed: number): Promise<ReceiptLog> => {
      const log = new ReceiptLog(identity, privateKey, OPTIONS, partsOf(join(folder, name)));
      await log.begin({ heads: [], gap: null });
      log.record(testEntry(seed, 0));
      await log.close();
      return log;
    };
    const [one, copy] = [await run('one', 1), await run('copy', 2)];
    const path = (name: string): string => join(folder, name, one.boot, headPath(1));
    renameSync(join(folder, 'one', one.boot), join(folder, one.boot));
    const kept = readFileSync(path('copy'), 'utf8');
    expect(judged(one)).toEqual({ verdict: 'gaps', faults: ['unattested'] });
    const heads = [...filesOf(one.boot, 'heads'), kept];
    const shown = [{ identity: encodeIdentity(identity), heads, entries: entriesOf(one.boot, 1) }];
    expect(copy.boot).toBe(one.boot);
    expect(verifyReceipts(shown, () => false).findings.map(({ fault }) => fault)).toContain('two_logs');
  });

  it('logs nothing after its last head', async () => {
    const log = await start();
    await log.close();
    expect(log.record(testEntry(1, 0))).toBe(false);
    expect(log.size).toBe(0);
  });
});
