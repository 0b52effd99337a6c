import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SecretKey } from '@chainsafe/blst';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../common/observe/logger.ts';
import { KNOWN_ANSWER, openNativeBlsCore } from '../../signer/bls/open.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { ADDON_PATH } from '../../signer/native/load.ts';
import { addonForTests, PROJECT_ROOT } from '../support/addon.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';

const withAddon = addonForTests();

function recorder() {
  const lines: { level: string; message: string }[] = [];
  const at = (level: string) => (_: object, message: string) => void lines.push({ level, message });
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-addon-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('the known answer is what @chainsafe/blst computes', () => {
  const secretKey = SecretKey.fromBytes(Buffer.from(KNOWN_ANSWER.secretKey, 'hex'));
  expect(secretKey.toPublicKey().toHex()).toBe(`0x${KNOWN_ANSWER.publicKey}`);
  expect(secretKey.sign(Buffer.from(KNOWN_ANSWER.root, 'hex')).toHex()).toBe(`0x${KNOWN_ANSWER.signature}`);
});

describe('the portable core is chosen', () => {
  it('when the addon was never built, and the log says how to build it', async () => {
    const log = recorder();
    const core = await openBlsCore({ log, cores: 1, addonPath: join(folder, 'absent.node') });
    expect(core.kind).toBe('portable');
    expect(log.lines).toContainEqual({ level: 'warn', message: expect.stringContaining('make native') });
    await core.close();
  });

  it('when it is asked for', async () => {
    const core = await openBlsCore({ log: recorder(), cores: 1, prefer: 'portable' });
    expect(core.kind).toBe('portable');
    await core.close();
  });

  it('when the addon is there and cannot be loaded: that is an error in the log', async () => {
    const addonPath = join(folder, 'broken.node');
    writeFileSync(addonPath, 'this is no shared object');
    const log = recorder();
    const core = await openBlsCore({ log, cores: 1, addonPath });
    expect(core.kind).toBe('portable');
    expect(log.lines.map(({ level }) => level)).toContain('error');
    await core.close();
  });

  it.runIf(withAddon)('when the addon is of an earlier build, which signs alone and not for a group', async () => {
    const addonPath = join(folder, 'earlier.cjs');
    writeFileSync(addonPath, `module.exports = { ...require(${JSON.stringify(ADDON_PATH)}), signGroup: undefined };`);
    const log = recorder();
    const core = await openBlsCore({ log, cores: 1, addonPath });
    expect(core.kind).toBe('portable');
    expect(log.lines.map(({ level }) => level)).toContain('error');
    await core.close();
  });

  it('and the log has the reason, not an empty object', async () => {
    const addonPath = join(folder, 'broken-too.node');
    writeFileSync(addonPath, 'this is no shared object');
    const lines: string[] = [];
    const log = createLogger({ level: 'error', format: 'json' }, { write: (line) => lines.push(line) });
    const core = await openBlsCore({ log: log.module('signing'), cores: 1, addonPath });
    await core.close();
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { err: { type: 'Error', message: expect.stringContaining('broken-too.node') } },
    ]);
  });

  it('never under server.mlock: required, which it could not keep', async () => {
    const addonPath = join(folder, 'broken-required.node');
    writeFileSync(addonPath, 'this is no shared object');
    const opening = openBlsCore({ log: recorder(), cores: 1, addonPath, mlock: 'required' });
    await expect(opening).rejects.toThrow(/server\.mlock is "required".*broken-required\.node/);
  });

  it.runIf(withAddon)('when the addon computes a wrong signature: that is an error in the log', async () => {
    const addonPath = join(folder, 'wrong.cjs');
    writeFileSync(
      addonPath,
      `const addon = require(${JSON.stringify(ADDON_PATH)});
       module.exports = { ...addon, signBatch: async (...batch) => {
         const signatures = await addon.signBatch(...batch);
         new Uint8Array(signatures)[50] ^= 1;
         return signatures;
       } };`,
    );
    const log = recorder();
    const core = await openBlsCore({ log, cores: 1, addonPath });
    expect(core.kind).toBe('portable');
    expect(log.lines.map(({ level }) => level)).toContain('error');
    await core.close();
  });

  it.runIf(withAddon)(
    'when only what it signs with a table of a root is wrong, however many cores there are',
    async () => {
      // Like signer/native/sign.c: a root is known when a signature of it has ended, and has a table when it is asked
      // for the 16th time after that.
      const addonPath = join(folder, 'wrong-table.cjs');
      writeFileSync(
        addonPath,
        `const addon = require(${JSON.stringify(ADDON_PATH)});
       let isKnown = false, uses = 0;
       module.exports = { ...addon, signBatch: async (keyring, handles, roots) => {
         if (isKnown) uses += handles.length;
         const hasTable = uses >= 16;
         const signatures = await addon.signBatch(keyring, handles, roots);
         isKnown = true;
         if (hasTable) new Uint8Array(signatures)[50] ^= 1;
         return signatures;
       } };`,
      );
      const core = await openBlsCore({ log: recorder(), cores: 16, addonPath });
      expect(core.kind).toBe('portable');
      await core.close();
    },
  );

  it.runIf(withAddon)('when only what it signs together is wrong, however many cores there are', async () => {
    const addonPath = join(folder, 'wrong-together.cjs');
    writeFileSync(
      addonPath,
      `const addon = require(${JSON.stringify(ADDON_PATH)});
       module.exports = { ...addon, signGroup: async (keyring, handles, root) => {
         const signatures = await addon.signGroup(keyring, handles, root);
         if (handles.length >= 7) new Uint8Array(signatures)[50] ^= 1;
         return signatures;
       } };`,
    );
    for (const cores of [1, 2, 16]) {
      const core = await openBlsCore({ log: recorder(), cores, addonPath });
      expect(core.kind).toBe('portable');
      await core.close();
    }
  });
});

describe('in an image nothing stands in for the native core', () => {
  it('that is missing or cannot be loaded', async () => {
    const broken = join(folder, 'broken-in-image.node');
    writeFileSync(broken, 'this is no shared object');
    for (const addonPath of [join(folder, 'absent.node'), broken]) {
      const opening = openNativeBlsCore({ log: recorder(), cores: 1, addonPath });
      await expect(opening).rejects.toThrow('nothing else may sign here');
    }
  });
});

it.runIf(withAddon)('the native core is chosen when the addon is built and proves itself', async () => {
  const log = recorder();
  const core = await openBlsCore({ log });
  expect(core.kind).toBe('native');
  expect(log.lines).toEqual([{ level: 'info', message: 'signing with the native BLS core' }]);
  await core.close();
});

it.each(withAddon ? ['native', 'portable'] : ['portable'])(
  'a process that forgot to close its %s core still waits for signatures, and then ends',
  (prefer) => {
    const program = `
      const { openBlsCore } = await import('./signer/bls/open-either.ts');
      const log = { debug() {}, info() {}, warn() {}, error: console.error };
      const core = await openBlsCore({ log, prefer: '${prefer}' });
      const { handle } = core.addKey(Buffer.alloc(32, 1));
      const signatures = await Promise.all(Array.from({ length: 100 }, (_, i) => core.sign(handle, Buffer.alloc(32, i), 'normal')));
      console.log(core.kind, signatures.length);`;
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: PROJECT_ROOT,
      encoding: 'utf8',
      timeout: LONGEST_WAIT_MS,
    });
    expect(run).toMatchObject({ status: 0, stdout: `${prefer} 100\n`, stderr: '' });
  },
);
