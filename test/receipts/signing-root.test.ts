// signing_root.py, with which an auditor leaves a vote or a block of the chain for the log, computes the root that the
// signer signs.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import { computeSigningRoot } from '../../signer/sign/message-root.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { attestation, block, MAINNET_ROOT } from '../support/messages.ts';
import { findPython } from '../support/needs.ts';

const PROGRAM = fileURLToPath(new URL('../../docs/examples/signing_root.py', import.meta.url));
const python = findPython('hashlib');
const FULU_EPOCH = 411_392;
const folder = mkdtempSync(join(tmpdir(), 'strongroom-root-'));

afterAll(() => rmSync(folder, { recursive: true }));

function fromSigner(body: object): string {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
  if (parsed.kind !== 'request') throw new Error(parsed.hint);
  return encodeHex(computeSigningRoot(parsed.request, publicNetwork('mainnet')));
}

function fromPython(message: unknown, forkVersion = '0x06000000', network = MAINNET_ROOT) {
  const flags = ['--fork-version', forkVersion, '--genesis-validators-root', network];
  const file = join(folder, 'message.json');
  writeFileSync(file, JSON.stringify(message));
  const { stdout, stderr, status } = spawnSync(python ?? '', [PROGRAM, file, ...flags], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' },
  });
  return { stdout: stdout.trimEnd(), stderr, status };
}

describe.runIf(python !== undefined)('the signing root of the auditor', () => {
  it('of a vote is that of the signer', () => {
    const body = attestation({ source: FULU_EPOCH, target: FULU_EPOCH + 1, index: 0 });
    expect(fromPython(body['attestation'])).toEqual({ stdout: fromSigner(body), stderr: '', status: 0 });
  });

  it('of a vote before the fork needs the version of before', () => {
    const body = attestation({ source: FULU_EPOCH - 2, target: FULU_EPOCH - 1 });
    expect(fromPython(body['attestation'], '0x05000000').stdout).toBe(fromSigner(body));
    expect(fromPython(body['attestation']).stdout).not.toBe(fromSigner(body));
  });

  it('of a block is that of the signer, from its header', () => {
    const body = block({ slot: FULU_EPOCH * 32 });
    const { block_header } = body['beacon_block'] as { readonly block_header: object };
    expect(fromPython(block_header)).toEqual({ stdout: fromSigner(body), stderr: '', status: 0 });
  });

  it('is none for what is no message', () => {
    for (const other of [{}, { slot: '1' }, [], 5]) {
      expect(fromPython(other)).toMatchObject({ stdout: '', status: 1 });
    }
    const { attestation: vote } = attestation() as { readonly attestation: object };
    expect(fromPython(vote, '0x0600').status).toBe(1);
    expect(fromPython(vote, '0x06000000', '0x00').status).toBe(1);
    expect(fromPython({ ...vote, beacon_block_root: '0x01' }).status).toBe(1);
  });
});
