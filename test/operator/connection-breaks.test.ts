// Connections that break: what the CLI repeats and what never, and that nothing is lost of what was done before.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cannedSigner } from './canned-signer.ts';
import { folder, operator, plainly, start } from './connection-set-up.ts';
import { answerRefusal } from './fixture-signer.ts';

describe('connections that break', () => {
  it('a GET is asked once more after a reset, and answered', async () => {
    let requests = 0;
    const signer = await start((received, response, request) => {
      requests += 1;
      if (requests === 1) (request.socket as Socket).resetAndDestroy();
      else cannedSigner(received, response, request);
    });
    expect((await plainly(signer, 'status')).code).toBe(0);
    expect(signer.received).toHaveLength(2);
  });

  it('only once', async () => {
    const signer = await start((_, __, request) => void (request.socket as Socket).resetAndDestroy());
    const { code, stderr } = await plainly(signer, 'status');
    expect(code).toBe(2);
    expect(stderr).toContain('the connection was closed before the answer');
    expect(signer.received).toHaveLength(2);
  });

  it.each([
    'seal --yes',
    'auth token create --management',
    'auth policy delete --name p --yes',
    `auth policy update --name p --rules '[{"effect":"deny"}]' --yes`,
  ])('what changes something is never repeated, and the doubt is said: %s', async (command) => {
    const signer = await start((_, __, request) => void (request.socket as Socket).resetAndDestroy());
    const { code, stderr } = await plainly(signer, command);
    expect(code).toBe(2);
    expect(stderr).toContain('may have been carried out');
    expect(signer.received).toHaveLength(1);
  });

  it('a signer that says nothing is given up on', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    for (const scheme of ['http', 'https']) {
      const args = `--signer-url ${scheme}://127.0.0.1:${port} --allow-plaintext-signer --timeout-seconds 1`;
      const { code, stderr } = await operator(`status ${args}`);
      expect(code).toBe(2);
      expect(stderr).toContain('nothing came for 1 s');
    }
    silent.close();
  });

  it('an export that breaks off leaves the earlier file as it was, and nothing else', async () => {
    const signer = await start((_, response) => {
      response.writeHead(200).write('{"metadata":{');
      response.write('x'.repeat(100_000), () => response.destroy());
    });
    writeFileSync(join(folder, 'records.json'), 'the earlier export');
    const { code, stderr } = await plainly(signer, 'slashing export --output records.json --force');
    expect(code).toBe(2);
    expect(stderr).toContain('the connection was closed before the answer');
    expect(readFileSync(join(folder, 'records.json'), 'utf8')).toBe('the earlier export');
    expect(execFileSync('ls', { cwd: folder, encoding: 'utf8' })).not.toContain('partial');
    expect((await plainly(signer, 'slashing export')).code).toBe(2);
    expect((await plainly(signer, 'slashing export --output new.json')).code).toBe(2);
    expect(existsSync(join(folder, 'new.json'))).toBe(false);
  });
});

describe('keys that are deleted in several batches', () => {
  it('keep the records of those that are gone when a later batch fails', async () => {
    let batches = 0;
    const signer = await start((received, response, request) => {
      batches += 1;
      if (batches === 1) cannedSigner(received, response, request);
      else answerRefusal(response, 'key_table_unavailable');
    });
    const [first, second] = ['a1', 'b2'].map((byte) => `0x${byte.repeat(48)}`);
    const deleted = await plainly(
      signer,
      `keys delete --pubkeys ${first},${second} --batch-size 1 --output gone.json --yes`,
    );
    expect(deleted.code).not.toBe(0);
    expect(deleted.stderr).toContain('1 of 2 keys was answered before this failed');
    expect(deleted.stderr).toContain('the slashing protection records are in gone.json');
    const { data } = JSON.parse(readFileSync(join(folder, 'gone.json'), 'utf8')) as { data: unknown[] };
    expect(data).toEqual([{ pubkey: first?.slice(0, 6) }]);
  });
});
