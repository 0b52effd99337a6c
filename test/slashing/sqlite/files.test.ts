// Where the database may lie, and what happens when its files are taken away under a running signer.

import { spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import { misplacement } from '../../../signer/slashing/sqlite/file/misplacement.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { noMounts } from '../../support/needs.ts';
import {
  block,
  checkOne,
  collect,
  MAIN_ROOT,
  publicKeyOf,
  quietLog,
  reinstate,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { type SignerProcess, startSigner } from '../../support/slashing-signers.ts';

const OPEN = fileURLToPath(new URL('../../support/slashing-open.ts', import.meta.url));

let folder: string;
let path: string;
const backends: SlashingBackend[] = [];
const signers: SignerProcess[] = [];

async function open(file = path): Promise<SlashingBackend> {
  const backend = await openSqliteBackend({ path: file, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
  backends.push(backend);
  return backend;
}

async function signer(file = path): Promise<SignerProcess> {
  const started = await startSigner({ backend: 'sqlite', path: file });
  signers.push(started);
  return started;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-files-'));
  path = join(folder, 'slashing_protection.sqlite');
});
afterEach(async () => {
  for (const one of signers.splice(0)) await one.kill();
  for (const backend of backends.splice(0)) await backend.close();
  rmSync(folder, { recursive: true });
});

describe('a second name of the file', () => {
  it('is refused under either name, after a kill -9 too: nothing conflicting is signed', async () => {
    const first = await signer();
    expect(await first.ask(vote(1, 1, 2, 'a'))).toBe('safe');
    await first.kill();
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    const second = join(elsewhere, 'database.sqlite');
    linkSync(path, second);
    for (const name of [path, second]) {
      await expect(startSigner({ backend: 'sqlite', path: name })).rejects.toThrow('ended at its start');
      await expect(open(name)).rejects.toThrow(/has 2 names \(hard links\)/);
    }
    unlinkSync(second);
    expect(await (await signer()).ask(vote(1, 1, 2, 'b'))).toBe('double_vote');
  });

  it('of a file beside it is refused too', async () => {
    await (await open()).close();
    linkSync(`${path}-lock`, join(folder, 'other-lock'));
    await expect(open()).rejects.toThrow(/-lock has 2 names/);
  });

  it('that is a symbolic link is good: it leads to the one name', async () => {
    await (await open()).close();
    symlinkSync(path, join(folder, 'link'));
    const backend = await open(join(folder, 'link'));
    expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
  });
});

describe.skipIf(noMounts())('mounts', () => {
  /** Opens a name in a mount namespace of its own, after `mount --bind FROM TO` there. */
  function openInNamespace(from: string, to: string, file: string): string {
    const script = 'mount --bind "$1" "$2" && exec "$3" "$4" "$5"';
    const args = ['-m', 'sh', '-c', script, 'sh', from, to, process.execPath, OPEN, file];
    const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
    return stdout + stderr;
  }

  it.each(['', ' with blanks'])(
    'a file that is mounted by itself is refused, on the same device too%s',
    async (name) => {
      await (await open()).close();
      const inside = join(folder, `container${name}`);
      mkdirSync(inside);
      const mounted = join(inside, 'database.sqlite');
      writeFileSync(mounted, '');
      expect(openInNamespace(path, mounted, mounted)).toMatch(/is mounted by itself: mount the folder, not the file/);
    },
  );

  it('a file beside it that is mounted by itself is refused', async () => {
    await (await open()).close();
    writeFileSync(`${path}-wal`, '');
    const other = join(folder, 'other');
    writeFileSync(other, '');
    expect(openInNamespace(other, `${path}-wal`, path)).toMatch(/-wal is mounted by itself/);
    rmSync(`${path}-wal`);
  });

  it('a folder that is mounted is good', async () => {
    await (await open()).close();
    const inside = join(folder, 'container');
    mkdirSync(inside);
    expect(openInNamespace(folder, inside, join(inside, 'slashing_protection.sqlite'))).toBe('open\n');
  });
});

describe('file systems', () => {
  const warnings: string[] = [];
  const log = { ...quietLog, warn: (_fields: unknown, text: string) => void warnings.push(text) };
  const on = (type: number) => misplacement(path, log, () => type);

  it.each([
    [0x6969, 'NFS'],
    [0xff534d42 | 0, 'CIFS'],
    [0xfe534d42, 'SMB2'],
    [0x01021997, '9p'],
    [0x5346414f, 'AFS'],
    [0x00c36400, 'Ceph'],
    [0x0bd00bd0, 'Lustre'],
  ])('%i, of a network, is refused', (type, name) => {
    expect(on(type)).toMatch(new RegExp(`network file system \\(${name}\\)`));
  });

  it.each([
    [0x65735546, 'a FUSE file system: make sure that it is a local one'],
    [0x01021994, 'tmpfs, which a restart of the machine empties'],
    [0x858458f6, 'ramfs, which a restart of the machine empties'],
    [0x794c7630, 'overlayfs, most likely the layer of a container'],
  ])('%i is warned of', (type, says) => {
    warnings.length = 0;
    expect([on(type), on(type | 0)]).toEqual([undefined, undefined]);
    expect(warnings).toEqual(Array(2).fill(expect.stringContaining(says)));
  });

  it('others are good', () => {
    warnings.length = 0;
    for (const type of [0xef53, 0x58465342, 0x9123683e]) expect(on(type)).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it('an error of the file system is named', async () => {
    await expect(open(join(folder, 'missing', 'database.sqlite'))).rejects.toThrow(/\(ENOENT\)/);
  });
});

describe('files taken away under a running signer', () => {
  const other = () => join(folder, 'other.sqlite');
  const TAKEN: Record<string, () => void | Promise<void>> = {
    'rm db': () => rmSync(path),
    'rm -wal': () => rmSync(`${path}-wal`),
    'mv other db': async () => {
      await (await open(other())).close();
      renameSync(other(), path);
    },
    'mv other -wal': () => {
      writeFileSync(other(), '');
      renameSync(other(), `${path}-wal`);
    },
  };

  it.each(Object.entries(TAKEN))(
    '%s: 503 with words for checks, health, exports and all that writes',
    async (_name, take) => {
      const backend = await open();
      expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
      await take();
      const refusal = { reason: 'slashing_unavailable', message: expect.stringMatching(/was deleted or replaced/) };
      const key = publicKeyOf(1);
      await expect(checkOne(backend, block(1, 2, 'a'))).rejects.toMatchObject(refusal);
      await expect(checkOne(backend, block(2, 1, 'a'))).rejects.toMatchObject(refusal);
      await expect(backend.checkHealth(new AbortController().signal)).rejects.toMatchObject(refusal);
      await expect(collect(backend.exportHistories())).rejects.toMatchObject(refusal);
      await expect(backend.endTenures([key])).rejects.toMatchObject(refusal);
      await expect(reinstate(backend, [key])).rejects.toMatchObject(refusal);
      await expect(backend.incarnate('', 'x')).rejects.toMatchObject(refusal);
      await expect(backend.jump({ slot: 1, sourceEpoch: 1, targetEpoch: 1 })).rejects.toMatchObject(refusal);
      await expect(backend.identity()).rejects.toMatchObject(refusal);
    },
  );

  it.each(Object.entries(TAKEN))(
    '%s: a signer releases nothing from then on, until it is killed',
    async (_name, take) => {
      const first = await signer();
      for (let epoch = 1; epoch < 20; epoch++) expect(await first.ask(vote(1, epoch, epoch + 1, 'a'))).toBe('safe');
      await take();
      for (let epoch = 20; epoch < 40; epoch++) {
        expect(await first.ask(vote(1, epoch, epoch + 1, 'a'))).toBe('slashing_unavailable');
      }
      await first.kill();
    },
  );

  it('put back in time, they are good again', async () => {
    const backend = await open();
    expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
    renameSync(path, other());
    await expect(checkOne(backend, block(2, 2, 'b'))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    renameSync(other(), path);
    expect(verdictName(await checkOne(backend, block(1, 1, 'b')))).toBe('double_block');
  });
});
