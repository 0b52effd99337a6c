// `operator receipts fetch`: the logs of a signer come into a folder, verified while they come, and are fetched on
// where they ended. A signer that shows another log than it signed, or less than before, is found out at once.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeEntry, encodeBundle } from '../../common/receipts/read-entry.ts';
import { headPath, tilePath } from '../../common/receipts/tiles.ts';
import { leafHash } from '../../common/receipts/tree.ts';
import { encodeEntry } from '../receipts/encode-entry.ts';
import { type MadeLog, makeLog, naming, testBoot, testEntry, writeLog } from '../receipts/logs.ts';
import { type Change, type ReceiptsServer, serveReceipts } from './receipts-server.ts';
import { runWithRoot } from './run-operator.ts';

const BOOT = testBoot(1);
/** Its signer runs on: a longer log of the same boot begins with the same heads. */
const SHORT = { sizes: [3, 300], startSeconds: 0, closed: false };
const LONG = { ...SHORT, sizes: [3, 300, 300, 600] };

let root: string;
let source: string;
let target: string;
let server: ReceiptsServer | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'strongroom-fetch-'));
  source = join(root, 'signer');
  target = join(root, 'auditor');
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(root, { recursive: true });
});

async function fetchFrom(logs: readonly MadeLog[], flags: readonly string[] = [], change?: Change) {
  await server?.close();
  rmSync(source, { recursive: true, force: true });
  for (const log of logs) writeLog(source, log);
  server = await serveReceipts(source, change);
  const signer = ['--signer-url', server.url, '--allow-plaintext-signer'];
  return runWithRoot(['receipts', 'fetch', target, ...signer, ...flags], { rootFingerprint: '00' });
}

function filesIn(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => [path.slice(folder.length + 1), readFileSync(path).toString('base64')] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

const pathOf = (path: string): string => join(target, BOOT.boot, path);
/** At one place of the log the signer shows something else. */
function at(path: string, other: (content: Buffer | undefined) => Buffer | undefined): Change {
  return (asked, content) => (asked === `${BOOT.boot}/${path}` ? other(content) : content);
}

describe('a log that is fetched', () => {
  it('is what the signer has, and its verdict is that of the folder', async () => {
    const { code, stdout, stderr } = await fetchFrom([makeLog(BOOT, 1, LONG)]);
    expect(code).toBe(12);
    expect(stdout).toContain('gaps: 1 boot');
    expect(stderr).toContain('the logs have gaps: unattested, open_end');
    const fetched = filesIn(join(target, BOOT.boot));
    expect(fetched).toEqual(filesIn(join(source, BOOT.boot)));
  });

  it('comes over as few connections as are asked for at once, four for heads and four for entries', async () => {
    await fetchFrom([makeLog(BOOT, 1, { ...LONG, sizes: Array.from({ length: 60 }, (_, index) => index) })]);
    expect(server?.asked.length).toBeGreaterThan(60);
    expect(server?.connections).toBeLessThanOrEqual(1 + 2 * 4);
  });

  it('is fetched on: nothing comes twice that is whole here', async () => {
    await fetchFrom([makeLog(BOOT, 1, SHORT)]);
    expect(existsSync(pathOf(tilePath('entries', 1, 44)))).toBe(true);
    await fetchFrom([makeLog(BOOT, 1, LONG)]);
    const boot = (path: string): string => `${BOOT.boot}/${path}`;
    expect(server?.asked.toSorted()).toEqual(
      [
        'identity',
        'checkpoint',
        headPath(3),
        headPath(4),
        headPath(5),
        tilePath('entries', 1, 256),
        tilePath('entries', 2, 88),
      ]
        .map(boot)
        .toSorted(),
    );
    expect(existsSync(pathOf('tile/entries/001.p'))).toBe(false);
    expect(existsSync(pathOf('tile/0/001.p'))).toBe(false);
  });

  it('of which a call was cut off in its midst is whole after the next one', async () => {
    await fetchFrom(
      [makeLog(BOOT, 1, LONG)],
      [],
      at(tilePath('entries', 2, 88), () => undefined),
    );
    expect(existsSync(pathOf('checkpoint'))).toBe(false);
    const { code } = await fetchFrom([makeLog(BOOT, 1, LONG)]);
    expect(code).toBe(12);
    expect(server?.asked).not.toContain(`${BOOT.boot}/${tilePath('entries', 0, 256)}`);
    expect(filesIn(join(target, BOOT.boot))).toMatchObject(filesIn(join(source, BOOT.boot)));
  });

  it('has the head that was kept before a kill, and that the checkpoint does not show', async () => {
    const log = makeLog(BOOT, 1, LONG);
    await fetchFrom(
      [log],
      [],
      at('checkpoint', () => Buffer.from(log.heads.at(-2) ?? '')),
    );
    expect(readFileSync(pathOf('checkpoint'), 'utf8')).toBe(log.heads.at(-1));
  });

  it('takes the begin of a tile that has become full meanwhile', async () => {
    const log = makeLog(BOOT, 1, LONG);
    const short = makeLog(BOOT, 1, SHORT);
    const { code } = await fetchFrom(
      [log],
      [],
      at('checkpoint', () => Buffer.from(short.heads.at(-1) ?? '')),
    );
    expect(code).toBe(12);
    expect(readFileSync(pathOf(tilePath('entries', 1, 44)))).toEqual(encodeBundle(short.entries.slice(256)));
  });

  it('of other boots comes without entries outside of the time that was asked for, and is judged for that time', async () => {
    const first = makeLog(BOOT, 1, { ...SHORT, closed: true });
    const second = testBoot(2);
    const later = makeLog(second, 2, { sizes: [5], startSeconds: 3600, before: naming(first.heads.at(-1) ?? '') });
    const { code, stdout } = await fetchFrom([first, later], ['--from', '2026-11-25T12:30:00Z', '--json']);
    expect(code).toBe(12);
    const answer = JSON.parse(stdout) as {
      findings: { fault: string }[];
      fetched: { boot: string; entries?: number }[];
    };
    expect(answer.findings).toEqual([expect.objectContaining({ boot: second.boot, fault: 'unattested' })]);
    expect(answer.fetched.find(({ boot }) => boot === BOOT.boot)).not.toHaveProperty('entries');
    expect(answer.fetched.find(({ boot }) => boot === second.boot)).toHaveProperty('entries', 5);
    const early = await fetchFrom([first, later], ['--to', '2026-11-25T12:00:00Z']);
    expect({ code: early.code, stdout: early.stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining('whole: 2 boots, of which 0 ran in that time\n'),
    });
  });
});

describe('a log of which the signer removed entries', () => {
  /** Heads after 0, 12, …, 60 hours: after a day, the 300 entries of the first 36 hours may go. */
  const PLAN = { ...LONG, intervalSeconds: 43_200 };
  const log = makeLog(BOOT, 1, { ...PLAN, retentionDays: 1 });
  const PATH = tilePath('entries', 0, 256);
  const withHashes =
    (...tiles: readonly number[]): Change =>
    (path, content) => {
      const at = tiles.findIndex((tile) => path.endsWith(tilePath('entries', tile, 256)));
      if (at >= 0) return undefined;
      const shown = tiles.find((tile) => path.endsWith(tilePath(0, tile, 256)));
      if (shown === undefined) return content;
      return Buffer.concat(log.entries.slice(shown * 256, (shown + 1) * 256).map(leafHash));
    };

  it('is fetched with their hashes, and a verdict that names them', async () => {
    const { code, stderr } = await fetchFrom([log], [], withHashes(0));
    expect({ code, stderr }).toEqual({ code: 12, stderr: expect.stringContaining('removed_by_retention') });
    expect(existsSync(pathOf(PATH))).toBe(false);
    expect(statSync(pathOf('tile/0/000')).size).toBe(256 * 32);
    const again = await fetchFrom([log], [], withHashes(0));
    expect(again.stderr).toBe(stderr);
  });

  it('keeps what an earlier call fetched', async () => {
    await fetchFrom([log]);
    const { stderr } = await fetchFrom([log], [], withHashes(0));
    expect(stderr).not.toContain('removed_by_retention');
    expect(existsSync(pathOf(PATH))).toBe(true);
  });

  it('keeps the first entries of a tile that an earlier call fetched before it was full', async () => {
    const plan = { ...PLAN, sizes: [3, 200], retentionDays: 1 };
    await fetchFrom([makeLog(BOOT, 1, plan)]);
    await fetchFrom([makeLog(BOOT, 1, { ...plan, sizes: [3, 200, 300, 300, 600] })], [], withHashes(0));
    const { stdout } = await runWithRoot(
      [
        'receipts',
        'verify',
        target,
        '--unattested',
        '--json',
        '--signer-url',
        'http://127.0.0.1:1',
        '--allow-plaintext-signer',
      ],
      { rootFingerprint: '00' },
    );
    // Of the first tile 200 entries are at hand, and all of the others.
    const counts = [...log.entries.slice(0, 200), ...log.entries.slice(256)].map(decodeEntry);
    const signed = counts.filter((entry) => entry?.reason === null).length;
    expect(JSON.parse(stdout)).toMatchObject({ boots: [{ signed, refused: counts.length - signed }] });
  });

  it('of which it withholds more than its heads let it, and under the pretext of another retention, is broken', async () => {
    const more = await fetchFrom([log], [], withHashes(0, 1));
    expect({ code: more.code, stderr: more.stderr }).toEqual({
      code: 11,
      stderr: expect.stringContaining('missing_entries'),
    });
    rmSync(target, { recursive: true });
    const never = await fetchFrom([makeLog(BOOT, 1, PLAN)], [], withHashes(0));
    expect({ code: never.code, stderr: never.stderr }).toEqual({
      code: 11,
      stderr: expect.stringContaining('missing_entries'),
    });
  });

  it('shows other hashes in their place, and is broken', async () => {
    const { code, stderr } = await fetchFrom([log], [], (path, content) =>
      path.endsWith(tilePath(0, 0, 256)) ? Buffer.alloc(256 * 32) : withHashes(0)(path, content),
    );
    expect({ code, stderr }).toEqual({ code: 11, stderr: expect.stringContaining('other_root') });
  });
});

describe('a signer that shows another log', () => {
  const forged = encodeEntry(testEntry(9, 2));
  const log = makeLog(BOOT, 1, LONG);
  const second = makeLog(BOOT, 7, LONG);
  const other = makeLog(testBoot(2), 1, LONG);

  it.each<[string, string, Change]>([
    ['a forged entry', 'other_root', at(tilePath('entries', 0, 256), () => bundleWith(log, 7, forged))],
    ['an entry that lacks', 'missing_entries', at(tilePath('entries', 0, 256), () => bundleWith(log, 7))],
    ['bytes that are no bundle', 'missing_entries', at(tilePath('entries', 0, 256), () => Buffer.alloc(3, 255))],
    ['a head of a second log', 'broken_chain', at(headPath(2), () => Buffer.from(second.heads[2] ?? ''))],
    ['a head twice', 'missing_head', at(headPath(2), () => Buffer.from(log.heads[1] ?? ''))],
    ['no head', 'missing_head', at(headPath(2), () => undefined)],
    ['no entries', 'missing_entries', at(tilePath('entries', 1, 256), () => undefined)],
    ['no checkpoint', 'missing_head', at('checkpoint', () => undefined)],
    ['another checkpoint', 'two_logs', at('checkpoint', () => Buffer.from(second.heads.at(-1) ?? ''))],
    ['a head of another boot', 'other_boot', at(headPath(1), () => Buffer.from(other.heads[1] ?? ''))],
    ['an identity of another boot', 'other_boot', at('identity', () => Buffer.from(`${other.identity}\n`))],
    ['a head of another form', 'malformed_head', at(headPath(1), () => Buffer.from('no head'))],
    ['an altered signature', 'bad_signature', at(headPath(1), (head) => altered(head ?? Buffer.alloc(0)))],
  ])('%s: %s', async (_what, fault, change) => {
    const { code, stderr } = await fetchFrom([log], [], change);
    expect({ code, stderr }).toEqual({ code: 11, stderr: expect.stringContaining(`boot ${BOOT.boot}: ${fault}: `) });
    expect(existsSync(pathOf('checkpoint'))).toBe(false);
  });

  it('leaves no entries that no head covers: the next call gets the right ones', async () => {
    await fetchFrom(
      [log],
      [],
      at(tilePath('entries', 1, 256), () => encodeBundle(second.entries.slice(256, 512))),
    );
    expect(existsSync(pathOf(tilePath('entries', 1, 256)))).toBe(false);
    expect((await fetchFrom([log])).code).toBe(12);
  });

  it('is found to have gone back behind what the folder has', async () => {
    await fetchFrom([log]);
    const { code, stderr } = await fetchFrom([makeLog(BOOT, 1, SHORT)]);
    expect({ code, stderr }).toEqual({ code: 11, stderr: expect.stringContaining('went_back') });
  });

  it('is found to have two logs of one boot, the one in the folder and another', async () => {
    await fetchFrom([makeLog(BOOT, 1, SHORT)]);
    const same = await fetchFrom([makeLog(BOOT, 7, SHORT)]);
    expect({ code: same.code, stderr: same.stderr }).toEqual({ code: 11, stderr: expect.stringContaining('two_logs') });
    const kept = filesIn(target);
    const longer = await fetchFrom([second]);
    expect({ code: longer.code, stderr: longer.stderr }).toEqual({
      code: 11,
      stderr: expect.stringContaining('other_root'),
    });
    expect(filesIn(target)).toEqual(kept);
  });

  it('is found to have another identity of the boot than the folder', async () => {
    await fetchFrom([log]);
    writeFileSync(pathOf('identity'), log.identity.replace('0xd8', '0xd9'));
    const { code, stderr } = await fetchFrom([log]);
    expect({ code, stderr }).toEqual({ code: 11, stderr: expect.stringContaining('two_logs') });
  });
});

describe('a folder', () => {
  it('that was damaged is found, and its entries come again once the file is removed', async () => {
    const log = makeLog(BOOT, 1, LONG);
    await fetchFrom([log]);
    const path = tilePath('entries', 0, 256);
    writeFileSync(pathOf(path), bundleWith(log, 7, encodeEntry(testEntry(9, 2))));
    const { code, stderr } = await fetchFrom([log]);
    expect({ code, stderr }).toEqual({ code: 11, stderr: expect.stringContaining(`remove ${path} and fetch again`) });
    rmSync(pathOf(path));
    expect((await fetchFrom([log])).code).toBe(12);
  });

  it('is needed, and times are times', async () => {
    const flags = { rootFingerprint: '00' };
    expect((await runWithRoot(['receipts', 'fetch'], flags)).code).toBe(1);
    for (const span of [
      ['--from', 'monday'],
      ['--from', '2026-11-02', '--to', '2026-11-01'],
      ['--from', '2026-13-01'],
    ]) {
      const { code, stderr } = await runWithRoot(['receipts', 'fetch', target, ...span], flags);
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('--from') });
    }
  });
});

/** The first bundle, without this entry or with another one in its place. */
function bundleWith({ entries }: MadeLog, index: number, ...others: Buffer[]): Buffer {
  return encodeBundle(entries.slice(0, 256).toSpliced(index, 1, ...others));
}

function altered(head: Buffer): Buffer {
  return Buffer.from(
    head.toString('utf8').replace(/(\n— \S+ \S{20})(\S)/, (_, before, own) => before + (own === 'x' ? 'y' : 'x')),
  );
}
