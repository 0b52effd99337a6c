// The operator CLI as its users see it: the real program, over TLS, to a server with given answers. `vitest run -u`
// with TEST_SCALE=1 rewrites the golden files; read what changed.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { walkDescriptions } from '../../common/command-line/command.ts';
import { describeGroup } from '../../common/command-line/program.ts';
import { OPERATOR_TREE } from '../../operator/tree.ts';
import { makeCertificate } from '../support/certificates.ts';
import { cannedSigner } from './canned-signer.ts';
import { type FixtureSigner, startFixtureSigner } from './fixture-signer.ts';
import { goldenPath, rerun } from './transcript.ts';

let folder: string;
let signer: FixtureSigner;
let connected: Record<string, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-operator-'));
  mkdirSync(join(folder, '.config/strongroom'), { recursive: true });
  const certificate = makeCertificate(folder, 'signer');
  signer = await startFixtureSigner(cannedSigner, certificate);
  const refused = ['stateless', 'latched', 'unknown', 'denied', 'auth_sealed', 'sealed', 'stale'];
  connected = {
    SVC_OPERATOR_SIGNER_URL: signer.url,
    SVC_OPERATOR_TLS_CA: certificate.cert,
    SVC_OPERATOR_TOKEN: 'sr_mgmt_test',
    ...Object.fromEntries(refused.map((name) => [name.toUpperCase(), `sr_client_${name}`])),
  };
});

afterAll(async () => {
  await signer.close();
  rmSync(folder, { recursive: true });
});

describe('golden transcripts', () => {
  it.each(['status', 'seal', 'auth', 'slashing', 'keys'])('%s', async (name) => {
    await expect(await rerun(name, { folder, env: connected })).toMatchFileSnapshot(goldenPath(name));
  });

  it('settings', async () => {
    await expect(await rerun('settings', { folder, env: {} })).toMatchFileSnapshot(goldenPath('settings'));
  });

  it('usage: whatever is wrong on this side, nothing is sent', async () => {
    const before = signer.received.length;
    await expect(await rerun('usage', { folder, env: connected })).toMatchFileSnapshot(goldenPath('usage'));
    expect(signer.received.length).toBe(before);
  });
});

describe('what people read', () => {
  it.each(['status', 'seal', 'auth', 'slashing', 'keys'])('%s fits 100 columns', (name) => {
    const lines = readFileSync(goldenPath(name), 'utf8').split('\n');
    // a key and what is said of it stand on one line
    const wide = lines.filter((line) => line.length > 100 && !/^(?:[$!{]|0x[0-9a-f]{96} )/.test(line));
    expect(wide).toEqual([]);
  });

  it('every command has two examples that begin with the command', async () => {
    const commands = [...walkDescriptions(await describeGroup(OPERATOR_TREE))].filter(
      ({ description }) => description.commands === undefined,
    );
    expect(commands.length).toBeGreaterThan(20);
    for (const { path, description } of commands) {
      const { examples = [] } = description;
      const start = ['strongroom operator', ...path].join(' ');
      for (const example of examples) expect(example.startsWith(start)).toBe(true);
      expect(new Set(examples).size).toBe(2);
    }
  });
});
