// The program `strongroom-operator tunnel`: its start, its end and its refusals.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { ownAddress } from '../support/own-address.ts';
import { answerJson } from './fixture-signer.ts';
import { ask } from './running-tunnel.ts';
import { ending, freePort, startServer, startTunnel, TOKEN } from './tunnel-set-up.ts';

const PCR0 = `0=${testPcr(0).toString('hex')}`;
const STRONGROOM = join(import.meta.dirname, '../../bin/strongroom');

describe('the program', () => {
  it('stops when it is told: what is under way is finished, nothing new is taken', async () => {
    const { promise: arrived, resolve: onArrived } = Promise.withResolvers<() => void>();
    const server = await startServer((_, response) => onArrived(() => answerJson(response, 200, { late: true })));
    const tunnel = await startTunnel(server);
    const reply = ask(tunnel, '/');
    const answer = await arrived;
    const stopping = tunnel.logged('stopping');
    tunnel.stop();
    await stopping;
    await expect(ask(tunnel, '/new')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    answer();
    expect(await reply).toMatchObject({ status: 200, json: { late: true } });
    expect(await tunnel.ended).toBeUndefined();
  });

  it('listens while the enclave is not there, and ends with 0 on SIGTERM', async () => {
    const url = `https://${ownAddress(5)}:${await freePort()}`;
    const [port, other] = [await freePort(), await freePort()];
    const { child, stderr } = run(
      '--signer-url',
      url,
      '--pcr',
      PCR0,
      '--any-configuration',
      '--token',
      'env:MINE',
      '--listen',
      `${ownAddress(5)}:${port}`,
    );
    await stderr('listening on');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(other).not.toBe(port);
  });

  it.each<[string, string[], string]>([
    [
      'an address for others',
      ['--pcr', PCR0, '--any-configuration', '--token', 'env:MINE', '--listen', '0.0.0.0:9000'],
      'can be reached from other machines',
    ],
    [
      'no address',
      ['--pcr', PCR0, '--any-configuration', '--token', 'env:MINE', '--listen', 'here'],
      'is not an address and a port',
    ],
    ['no reference values', ['--token', 'env:MINE'], 'say which image with --pcrs or --pcr'],
    ['any configuration', ['--pcr', PCR0, '--token', 'env:MINE'], 'PCR16 is missing'],
    ['no token', ['--pcr', PCR0, '--any-configuration'], 'a tunnel adds a token'],
    [
      'no limit',
      ['--pcr', PCR0, '--any-configuration', '--token', 'env:MINE', '--max-connections', '0'],
      '--max-connections is a whole number',
    ],
  ])('wrong usage: %s', async (_, args, message) => {
    const { child, stderr } = run(...args);
    const [code] = await once(child, 'exit');
    await stderr(message);
    expect(code).toBe(1);
  });
});

function run(...args: string[]) {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', MINE: TOKEN };
  const child = spawn(STRONGROOM, ['operator', 'tunnel', ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  ending.push(async () => child.kill('SIGKILL'));
  let written = '';
  let wake = (): void => undefined;
  child.stderr.on('data', (chunk: Buffer) => {
    written += chunk;
    wake();
  });
  const stderr = async (words: string): Promise<void> => {
    while (!written.includes(words))
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    expect(written).not.toContain(TOKEN);
  };
  return { child, stderr };
}
