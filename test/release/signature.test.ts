// A release as its publisher signs it, and the commands of docs/guides/install.md before folders of files: what was
// altered, or signed with another key, is refused by what every machine has. TEST keys.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lacking } from '../support/needs.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/guides/install.md'), 'utf8');
const CONTRIBUTING = readFileSync(join(import.meta.dirname, '../../CONTRIBUTING.md'), 'utf8');
const VERIFY = /```sh elsewhere template\n(echo "publisher[^`]*)```/.exec(PAGE)?.[1] ?? 'false';
const SIGN = /`(ssh-keygen -Y sign [^`]*)`/.exec(CONTRIBUTING)?.[1] ?? 'false';

let folder: string;
const at = (name: string): string => join(folder, name);

function run(script: string) {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { cwd: folder, encoding: 'utf8' });
  return { status, text: `${stdout}${stderr}` };
}

function sign(key: string): void {
  run(`rm -f SHA256SUMS.sig; ssh-keygen -q -t ed25519 -N '' -C '' -f ${key}`);
  const { status, text } = run(SIGN.replace('KEY', key));
  if (status !== 0) throw new Error(text);
}

describe.skipIf(lacking('ssh-keygen') !== undefined)('the files of a release', () => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'strongroom-signed-'));
    for (const name of ['strongroom.tar.gz', 'strongroom.deb', 'provenance.json']) writeFileSync(at(name), name);
    run('sha256sum strongroom.* provenance.json > SHA256SUMS');
    sign('publisher');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('are accepted; a form that was not downloaded is no fault', () => {
    expect(run(VERIFY)).toMatchObject({ status: 0, text: expect.stringContaining('provenance.json: OK') });
    rmSync(at('strongroom.deb'));
    expect(run(VERIFY)).toMatchObject({ status: 0, text: expect.not.stringContaining('strongroom.deb') });
  });

  it.each<[string, () => void]>([
    ['a file', () => writeFileSync(at('strongroom.deb'), 'another')],
    ['the provenance', () => writeFileSync(at('provenance.json'), '{}')],
    ['the list', () => writeFileSync(at('SHA256SUMS'), 'x')],
    ['the list, one line less', () => run('sed -i 1d SHA256SUMS')],
    ['the signature', () => run('sed -i 2s/./A/ SHA256SUMS.sig')],
    ['no signature', () => rmSync(at('SHA256SUMS.sig'))],
    ['no file', () => run('rm strongroom.* provenance.json')],
    ['another key', () => sign('other')],
    ['another purpose', () => run('rm SHA256SUMS.sig; ssh-keygen -q -Y sign -n file -f publisher SHA256SUMS')],
  ])('are refused: %s', (_what, change) => {
    change();
    expect(run(VERIFY).status).not.toBe(0);
  });
});
