// `operator receipts`: the logs of a signer in a folder, as an auditor has them, of an enclave and of a plain service.
// The exit codes are those of specification/operating.md#exit-codes.

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { identityBinding } from '../../common/receipts/identity.ts';
import { headPath, tilePath } from '../../common/receipts/tiles.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { createNsmEmulator, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { encodeEntry } from '../receipts/encode-entry.ts';
import { type MadeLog, makeLog, naming, testBoot, testEntry, writeLog } from '../receipts/logs.ts';
import { findPython } from '../support/needs.ts';
import { runWithRoot } from './run-operator.ts';

const PROGRAM = fileURLToPath(new URL('../../docs/examples/verify_receipts.py', import.meta.url));
const ITS_IMAGE = ['--pcr', `0=${testPcr(0).toString('hex')}`, '--any-configuration'];
const OTHER_IMAGE = ['--pcr', `0=${'ab'.repeat(48)}`, '--any-configuration'];
const ROOT = `0x${'01'.repeat(32)}`;
const python = findPython('cryptography');
const emulator = await createNsmEmulator();
const nsm = createNsm(emulator.exchange);

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-auditor-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

async function keepLog(isAttested: boolean): Promise<MadeLog['test']> {
  const { identity } = testBoot(1);
  const userData = identityBinding({ ...identity, kind: 'attested' });
  const test = testBoot(1, isAttested ? await nsm.attest({ userData }) : null);
  writeLog(join(folder, 'receipts'), makeLog(test, 1, { sizes: [300], startSeconds: 0 }));
  return test;
}

function verify(...flags: string[]) {
  const options = { rootFingerprint: emulator.rootFingerprint };
  return runWithRoot(['receipts', 'verify', join(folder, 'receipts'), ...flags], options);
}

describe('the log of an enclave', () => {
  it('0: is whole under the reference values of its image', async () => {
    const { boot } = await keepLog(true);
    const { code, stdout, stderr } = await verify(...ITS_IMAGE);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/\nwhole: 1 boot\n$/),
      stderr: '',
    });
    if (python === undefined) return;
    writeFileSync(join(folder, 'pcrs.json'), JSON.stringify({ measurements: { PCR0: testPcr(0).toString('hex') } }));
    const judged = spawnSync(
      python,
      [
        ...[PROGRAM, join(folder, 'receipts', boot), '--pcrs', join(folder, 'pcrs.json')],
        ...['--test-root', emulator.rootFingerprint],
      ],
      { encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' } },
    );
    expect({ status: judged.status, stdout: judged.stdout }).toEqual({ status: 0, stdout: 'whole\n' });
  });

  it.each([
    ['those of another image', OTHER_IMAGE],
    ['none', []],
  ])('11: is not attested under reference values: %s', async (_what, flags) => {
    const { boot } = await keepLog(true);
    const { code, stdout } = await verify(...flags);
    expect(code).toBe(11);
    expect(stdout).toContain(`${boot}  not_attested: `);
  });

  it('11: is broken when an entry is altered, and nothing is found in it', async () => {
    const { boot } = await keepLog(true);
    const path = join(folder, 'receipts', boot, tilePath('entries', 1, 44));
    writeFileSync(path, Buffer.alloc(44 * 4));
    expect(await verify(...ITS_IMAGE)).toMatchObject({ code: 11 });
    const { code, stdout } = await verify('--signing-root', ROOT, ...ITS_IMAGE);
    expect({
      code,
      lines: stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(':')[0]),
    }).toEqual({
      code: 11,
      lines: [
        'broken',
        ...['malformed_entry', 'other_root', 'uncovered_entries'].map((fault) => `  ${boot}  ${fault}`),
      ],
    });
  });

  it('11: whose end was taken away has a gap, and is broken for an auditor who kept a head', async () => {
    const { boot } = await keepLog(true);
    const own = join(folder, 'receipts', boot);
    const kept = join(folder, 'kept.txt');
    copyFileSync(join(own, headPath(1)), kept);
    rmSync(join(own, headPath(1)));
    rmSync(join(own, tilePath('entries', 1, 44)));
    const without = await verify(...ITS_IMAGE);
    expect({ code: without.code, stderr: without.stderr }).toEqual({
      code: 12,
      stderr: expect.stringContaining('the logs have gaps: open_end'),
    });
    const { code, stderr } = await verify(...ITS_IMAGE, '--kept', kept);
    expect(code).toBe(11);
    expect(stderr).toContain('the logs are broken: missing_entries');
  });
});

describe('the log of a plain service', () => {
  it('12: has the gap that no document attests it', async () => {
    const { boot } = await keepLog(false);
    const { code, stdout } = await verify('--json');
    expect(code).toBe(12);
    expect(JSON.parse(stdout)).toEqual({
      verdict: 'gaps',
      findings: [{ fault: 'unattested', boot, detail: 'a plain service kept this log' }],
      boots: [
        {
          ...{ boot, kind: 'unattested', closed: true, heads: 2, size: 300, lost: 0, names: [], measurements: null },
          ...{ from: '2026-11-25T12:00:00.000Z', to: '2026-11-25T12:01:00.000Z' },
          ...{ accepted: null, signed: 0, refused: 0 },
        },
      ],
      ...{ without_log: [], restarts: [] },
    });
  });

  it('12: shows what it has of a signing root by the word of the auditor, and 13: nothing without it', async () => {
    const { boot } = await keepLog(false);
    const { code, stdout } = await verify('--signing-root', ROOT, '--unattested', '--json');
    expect(code).toBe(12);
    const { found } = JSON.parse(stdout) as { found: { index: number }[] };
    expect(found.map(({ index }) => index)).toEqual([1, 257]);
    expect(found[0]).toMatchObject({
      ...{ operation: 'RANDAO_REVEAL', outcome: 'signed', signing_root: ROOT, head: 1, position: { epoch: 1001 } },
      boot,
    });
    expect((await verify('--signing-root', ROOT, '--unattested')).stdout).toContain(
      'by a signer that no document attests',
    );
    const without = await verify('--signing-root', ROOT);
    expect(without).toMatchObject({ code: 13, stderr: expect.stringContaining('with --unattested only') });
    expect(without.stdout).not.toContain(ROOT);
  });

  it('13: has nothing of another signing root, and says of one that was refused that it was', async () => {
    await keepLog(false);
    const missing = await verify('--signing-root', `0x${'0102'.repeat(16)}`, '--unattested');
    expect(missing).toMatchObject({
      code: 13,
      stderr: expect.stringContaining('no accepted log has the signing root'),
    });
    const refused = await verify('--signing-root', `0x${'31'.repeat(32)}`, '--unattested');
    expect(refused).toMatchObject({ code: 13, stdout: expect.stringContaining('double_vote') });
  });

  it('1: is not asked for what is no signing root', async () => {
    await keepLog(false);
    expect(await verify('--signing-root', '0x01')).toMatchObject({ code: 1, stdout: '' });
  });
});

/** A stolen key signs; whoever hands over the folder has none of the keys of boots. */
describe('a message that no accepted boot signed', () => {
  const STOLEN = `0x${'ee11'.repeat(16)}`;
  const SPAN = ['--from', '2026-11-25T12:00:00Z', '--to', '2026-11-25T12:00:30Z'];
  const forged = encodeEntry({ ...testEntry(1, 0), signingRoot: Buffer.from('ee11'.repeat(16), 'hex') });

  async function shown(where: 'behind' | 'beside', ...flags: string[]) {
    const test = await keepLog(true);
    const genuine = makeLog(test, 1, { sizes: [300], startSeconds: 0 });
    const before = naming(genuine.heads.at(-1) ?? '');
    const beside = makeLog(testBoot(9), 9, { sizes: [1], startSeconds: 200, before, entry: () => forged });
    const made = where === 'beside' ? beside : { ...genuine, entries: [...genuine.entries, forged] };
    writeLog(join(folder, 'receipts'), made);
    writeFileSync(join(folder, 'signed'), STOLEN);
    return [
      await verify('--signed', join(folder, 'signed'), ...ITS_IMAGE, ...flags),
      await verify('--signing-root', STOLEN, ...ITS_IMAGE, ...flags),
    ];
  }

  it.each([
    ['behind', SPAN],
    ['behind', []],
    ['beside', SPAN],
    ['beside', []],
  ] as const)('13: %s the log of an enclave, asked for %j', async (where, flags) => {
    for (const { code, stdout } of await shown(where, ...flags)) {
      expect(code).toBe(13);
      expect(stdout).not.toMatch(/as signed\n|by the image|all 1/);
    }
  });

  it('12: beside it counts by the word of the auditor, and no span hides that no document attests it', async () => {
    const [list, root] = await shown('beside', ...SPAN, '--unattested');
    expect(list).toMatchObject({ code: 12, stderr: expect.stringContaining('unattested') });
    expect(list?.stdout).toContain(
      'all 1 messages of the list are in the logs as signed, 1 of them in logs that no document attests',
    );
    expect(root).toMatchObject({ code: 12, stdout: expect.stringContaining('by a signer that no document attests') });
  });
});

it('names starts in a loop', async () => {
  const logs: MadeLog[] = [];
  for (let index = 0; index < 40; index++) {
    const before = naming(...logs.slice(-16).map(({ heads }) => heads.at(-1) ?? ''));
    logs.push(makeLog(testBoot(10 + index), 1, { sizes: [1], startSeconds: index * (index < 20 ? 100 : 400), before }));
  }
  for (const log of logs) writeLog(join(folder, 'receipts'), log);
  const { stdout } = await verify('--unattested');
  expect(stdout).toContain(
    '20 starts from 2026-11-25T12:00:00.000Z to 2026-11-25T12:31:40.000Z: the signer is restarted in a loop',
  );
  expect(stdout.match(/starts from/g)).toHaveLength(1);
});

describe('an audit', () => {
  const KEY = `0x${'01'.repeat(48)}`;
  const GENESIS = `0x${'d8'.repeat(32)}`;
  const rootOf = (byte: number): string => `0x${Buffer.alloc(32, byte).toString('hex')}`;

  async function audit(signed: string, ...flags: string[]) {
    writeFileSync(join(folder, 'signed'), signed);
    return verify('--signed', join(folder, 'signed'), ...flags);
  }

  interface Vote {
    readonly source_epoch: string;
    readonly target_epoch: string;
    readonly signing_root?: string;
  }

  function interchange(votes: readonly Vote[], network = GENESIS): string {
    const metadata = { interchange_format_version: '5', genesis_validators_root: network };
    return JSON.stringify({ metadata, data: [{ pubkey: KEY, signed_blocks: [], signed_attestations: votes }] });
  }

  it('0: finds all that an enclave signed', async () => {
    await keepLog(true);
    const { code, stdout } = await audit(`${rootOf(0)}\n${KEY} ${rootOf(3)}\n\n${KEY},${rootOf(6)}\n`, ...ITS_IMAGE);
    expect(code).toBe(0);
    expect(stdout).toContain('all 3 messages of the list are in the logs as signed');
  });

  it('13: names what is in no log, and what a log has as refused only', async () => {
    await keepLog(true);
    const other = `0x${'02'.repeat(48)}`;
    const list = [rootOf(0), `0x${'0102'.repeat(16)}`, `${other} ${rootOf(3)}`, `${KEY} ${rootOf(49)}`].join('\n');
    const { code, stdout, stderr } = await audit(list, ...ITS_IMAGE, '--json');
    expect({ code, stderr }).toEqual({
      code: 13,
      stderr: expect.stringContaining('3 of 4 messages are in no accepted log'),
    });
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: 'whole',
      list: {
        ...{ listed: 4, not_in_log: 3 },
        first: [
          { signing_root: `0x${'0102'.repeat(16)}` },
          { signing_root: rootOf(3), public_key: other },
          { signing_root: rootOf(49), public_key: KEY, refused: 'double_vote' },
        ],
      },
    });
  });

  it('takes an EIP-3076 file: votes with their roots, and votes by key and epochs', async () => {
    await keepLog(true);
    const [first, second] = [0, 6].map((index) => ({
      ...{ source_epoch: String(999 + index), target_epoch: String(1000 + index) },
    })) as [Vote, Vote];
    expect((await audit(interchange([first, { ...second, signing_root: rootOf(6) }]), ...ITS_IMAGE)).code).toBe(0);
    const wrong = [
      { ...first, source_epoch: '998' },
      { ...first, target_epoch: '1001' },
      { ...first, signing_root: rootOf(6).replace('06', '07') },
    ];
    const { code, stderr } = await audit(interchange([...wrong, second]), ...ITS_IMAGE);
    expect({ code, stderr }).toEqual({ code: 13, stderr: expect.stringContaining('3 of 4 messages') });
  });

  it.each<[string, string]>([
    ['of another network', interchange([{ source_epoch: '1', target_epoch: '2' }], `0x${'00'.repeat(32)}`)],
    ['of a later version', interchange([{ source_epoch: '1', target_epoch: '2' }]).replace('"5"', '"6"')],
    ['with a number of another form', interchange([{ source_epoch: '01', target_epoch: '2' }])],
    ['that is empty', '\n'],
    ['with a line of another form', `${rootOf(0)}\n0x00\n`],
    ['with a line of three words', `a ${KEY} ${rootOf(0)}`],
  ])('1: refuses a list %s as a whole', async (_what, list) => {
    await keepLog(true);
    expect(await audit(list, ...ITS_IMAGE)).toMatchObject({ code: 1, stdout: '' });
  });

  it('11: says nothing of a list before the log is verified, and broken goes first', async () => {
    const { boot } = await keepLog(true);
    writeFileSync(join(folder, 'receipts', boot, tilePath('entries', 1, 44)), Buffer.alloc(44 * 4));
    for (const listed of [`0x${'0102'.repeat(16)}`, rootOf(1)]) {
      const { code, stdout, stderr } = await audit(listed, ...ITS_IMAGE);
      expect({ code, stderr }).toEqual({ code: 11, stderr: expect.stringContaining('the logs are broken') });
      expect(stdout).not.toContain('messages');
    }
  });

  it('says what each boot has in the time, whom it names, and when no log was kept', async () => {
    const first = makeLog(testBoot(1), 1, { sizes: [3, 7], startSeconds: 0 });
    const before = naming(first.heads.at(-1) ?? '');
    const second = makeLog(testBoot(2), 2, { sizes: [5], startSeconds: 3600, before });
    for (const log of [first, second]) writeLog(join(folder, 'receipts'), log);
    const span = ['--from', '2026-11-25T12:00:00.004Z', '--to', '2026-11-25T14:00:00Z'];
    const { code, stdout } = await verify('--unattested', '--json', ...span);
    expect(code).toBe(12);
    expect(JSON.parse(stdout)).toMatchObject({
      boots: [
        { boot: first.test.boot, from: '2026-11-25T12:00:00.000Z', to: '2026-11-25T12:02:00.000Z', closed: true },
        { boot: second.test.boot, names: [first.test.boot], signed: 0, refused: 1 },
      ],
      without_log: [
        { from: '2026-11-25T12:02:00.000Z', to: '2026-11-25T13:00:00.000Z' },
        { from: '2026-11-25T13:01:00.000Z', to: '2026-11-25T14:00:00.000Z' },
      ],
    });
    expect(JSON.parse(stdout)).toMatchObject({ boots: [{ signed: 2, refused: 1 }, {}] });
    const { stdout: said } = await verify('--unattested', ...span);
    expect(said).toContain('no accepted log from 2026-11-25T12:02:00.000Z to 2026-11-25T13:00:00.000Z\n');
  });
});

it('1: a folder without a boot is no log', async () => {
  expect(await verify()).toMatchObject({ code: 1, stdout: '' });
});

it('leaves out a boot that ended before it had a head', async () => {
  const { boot } = await keepLog(true);
  const ended = join(folder, 'receipts', 'ab'.repeat(16));
  mkdirSync(ended);
  copyFileSync(join(folder, 'receipts', boot, 'identity'), join(ended, 'identity'));
  expect(await verify(...ITS_IMAGE)).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nwhole: 1 boot\n$/) });
});
