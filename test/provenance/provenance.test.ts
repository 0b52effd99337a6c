// `strongroom release sign` and `verify`, the real program over folders of files. Whatever was altered, added, signed
// with another key or written in another form is refused; what was not downloaded is no fault. TEST keys.

import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const PROGRAM = join(import.meta.dirname, '../../bin/strongroom');
const ENVELOPE = 'provenance.dsse.json';
const FILES = { 'strongroom.tar.gz': 'a tarball', 'strongroom.deb': 'a package' };

let folder: string;
let keys: string;
const at = (name: string): string => join(folder, name);

function writeKeys(name: string, type: 'ed25519' | 'x25519' = 'ed25519'): void {
  const pair = generateKeyPairSync(type as 'ed25519');
  writeFileSync(join(keys, `${name}.pem`), pair.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(join(keys, `${name}.pub`), pair.publicKey.export({ type: 'spki', format: 'pem' }));
}

function run(...argv: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(PROGRAM, ['release', ...argv], { encoding: 'utf8' });
  return { status, text: `${stdout}${stderr}` };
}
const verify = (key = 'publisher.pub') => run('verify', folder, '--key', join(keys, key));

beforeEach(() => {
  [folder, keys] = ['release', 'keys'].map((name) => mkdtempSync(join(tmpdir(), `strongroom-${name}-`))) as [
    string,
    string,
  ];
  writeKeys('publisher');
  const subject = Object.entries(FILES).map(([name, text]) => {
    writeFileSync(at(name), text);
    return { name, digest: { sha256: createHash('sha256').update(text).digest('hex') } };
  });
  writeFileSync(at('provenance.json'), JSON.stringify({ _type: 'https://in-toto.io/Statement/v1', subject }));
  writeFileSync(at('SHA256SUMS'), 'of them');
  const signed = run('sign', folder, '--key', join(keys, 'publisher.pem'));
  if (signed.status !== 0) throw new Error(signed.text);
});
afterEach(() => {
  for (const path of [folder, keys]) rmSync(path, { recursive: true });
});

it('what was signed for is accepted, each file by its digest; a form that was not downloaded is no fault', () => {
  expect(verify()).toMatchObject({ status: 0, text: expect.stringContaining('3 files are those that the key') });
  rmSync(at('strongroom.deb'));
  const { status, text } = verify();
  expect(status).toBe(0);
  expect(text).toContain('not here   strongroom.deb');
});

it('the signature is over DSSE’s encoding, as other programs make it', () => {
  const { payload, payloadType, signatures } = JSON.parse(readFileSync(at(ENVELOPE), 'utf8'));
  const statement = Buffer.from(payload, 'base64');
  const text = `DSSEv1 ${payloadType.length} ${payloadType} ${statement.length} ${statement.toString('latin1')}`;
  const key = readFileSync(join(keys, 'publisher.pem'), 'utf8');
  expect(signatures[0].sig).toBe(sign(null, Buffer.from(text, 'latin1'), key).toString('base64'));
});

describe('refused is', () => {
  it.each([
    ['a file that was altered', () => writeFileSync(at('strongroom.deb'), 'another'), 'DIFFERENT  strongroom.deb'],
    ['a file that nobody signed for', () => writeFileSync(at('install.sh'), 'evil'), 'NOT NAMED  install.sh'],
    [
      'a provenance that is not the signed one',
      () => writeFileSync(at('provenance.json'), '{}'),
      'DIFFERENT  provenance',
    ],
    [
      'a folder without one of the files',
      () => {
        for (const name of ['provenance.json', ...Object.keys(FILES)]) rmSync(at(name));
      },
      'no file',
    ],
    [
      'an envelope with another statement',
      () => altered((e) => ({ ...e, payload: btoa('{}') })),
      'signature is not valid',
    ],
    ['two signatures', () => altered((e) => ({ ...e, signatures: [e.signatures[0], e.signatures[0]] })), 'no envelope'],
    ['another type of payload', () => altered((e) => ({ ...e, payloadType: 'text/plain' })), 'no envelope'],
    ['base64 in another form', () => altered((e) => ({ ...e, payload: `${e.payload} ` })), 'no envelope'],
  ] as readonly (readonly [string, () => void, string])[])('%s', (_what, change, said) => {
    change();
    expect(verify()).toMatchObject({ status: 2, text: expect.stringContaining(said) });
  });

  it('another key, which names both; and what is no key for this', () => {
    writeKeys('other');
    expect(verify('other.pub')).toMatchObject({ status: 2, text: expect.stringContaining('signed with another key') });
    writeKeys('exchange', 'x25519');
    for (const name of ['exchange.pub', 'publisher.pem', 'nowhere.pub'])
      expect(verify(name)).toMatchObject({ status: 1 });
  });

  it('an own signature over what is no statement of a release', () => {
    writeFileSync(at('provenance.json'), '{"subject":[]}');
    expect(run('sign', folder, '--key', join(keys, 'publisher.pem'))).toMatchObject({ status: 0 });
    expect(verify()).toMatchObject({ status: 1, text: expect.stringContaining('no in-toto statement') });
  });
});

interface Envelope {
  readonly payload: string;
  readonly payloadType: string;
  readonly signatures: readonly object[];
}

function altered(change: (envelope: Envelope) => object): void {
  writeFileSync(at(ENVELOPE), JSON.stringify(change(JSON.parse(readFileSync(at(ENVELOPE), 'utf8')))));
}
