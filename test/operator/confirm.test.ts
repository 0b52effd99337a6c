// The question before something is destroyed, on a real terminal (`script` of util-linux makes one): only the whole
// word goes on, and nothing is sent before it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lacking } from '../support/needs.ts';
import { cannedSigner } from './canned-signer.ts';
import { type FixtureSigner, startFixtureSigner } from './fixture-signer.ts';

const PROGRAM = join(import.meta.dirname, '../../bin/strongroom');
const ACCESSOR = 'acc_000102030405060708090a0b0c0d0e0f';
/** util-linux's; others take other arguments. */
const NO_TERMINAL = lacking('Linux', 'script');
const END_OF_INPUT = '\u0004';
const INTERRUPT = '\u0003';

let folder: string;
let signer: FixtureSigner;
let before: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-operator-'));
  signer = await startFixtureSigner(cannedSigner);
});

beforeEach(() => {
  before = signer.received.length;
});

afterAll(async () => {
  await signer.close();
  rmSync(folder, { recursive: true });
});

/** Run on a terminal of its own; type the answer when the question is there. */
async function onTerminal(command: string, answer: string, columns = 100) {
  const child = spawn('script', ['-qec', `stty cols ${columns}; ${PROGRAM} operator ${command}`, '/dev/null'], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      SVC_OPERATOR_SIGNER_URL: signer.url,
      SVC_OPERATOR_ALLOW_PLAINTEXT_SIGNER: 'true',
      SVC_OPERATOR_TOKEN: 'sr_mgmt_test',
    },
  });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const asked = screen.includes('to go on, anything else to stop: ');
    screen += text;
    if (!asked && screen.includes('to go on, anything else to stop: ')) child.stdin.write(answer);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, screen, sent: signer.received.slice(before).map(({ method, path }) => `${method} ${path}`) };
}

describe.skipIf(NO_TERMINAL)('on a terminal', () => {
  it('seal says what will happen and goes on when `seal` is typed', async () => {
    const { code, screen, sent } = await onTerminal('seal', 'seal\n');
    expect(screen).toContain(`At ${signer.url}:\r\nEvery replica seals and stops signing`);
    expect(screen).toContain('Type the word "seal" to go on, anything else to stop: ');
    expect(sent).toEqual(['POST /api/v1/chamber/seal']);
    expect(code).toBe(0);
  });

  it.each([80, 120])('what will happen is broken between words at %i columns', async (columns) => {
    const { screen } = await onTerminal('seal', 'no\n', columns);
    const asked = screen.slice(0, screen.indexOf('Type seal')).split('\r\n');
    expect(Math.max(...asked.map((line) => line.length))).toBeLessThanOrEqual(columns);
    expect(asked.join(' ')).toContain('until the SEAL_OVERRIDE row of the state table is deleted');
  });

  it('keys without slashing protection records are imported when that is typed', async () => {
    const keystores = join(folder, 'keystores');
    mkdirSync(keystores);
    writeFileSync(join(keystores, '1.json'), '{"crypto":{}}');
    writeFileSync(join(keystores, '1.password'), 'secret');
    const command = `keys import ${keystores} --storage memory`;
    expect(await onTerminal(command, 'yes\n')).toMatchObject({ code: 7, sent: [] });
    const { screen, sent } = await onTerminal(command, 'without records\n');
    expect(screen).toContain('1 key comes without slashing protection records');
    expect(sent).toEqual(['POST /api/v1/chamber/keys']);
  });

  it.each([
    ['y', 'y\n'],
    ['another case', 'SEAL\n'],
    ['nothing', '\n'],
    ['the end of input', END_OF_INPUT],
    ['an interrupt', INTERRUPT],
  ])('%s is no confirmation: exit 7, and nothing is sent', async (_, answer) => {
    const { code, screen, sent } = await onTerminal('seal', answer);
    expect(screen).toContain('not confirmed: nothing was sent');
    expect(sent).toEqual([]);
    expect(code).toBe(7);
  });

  it('a policy and a token are confirmed by their names', async () => {
    const policy = await onTerminal('auth policy delete --name monitoring', 'monitoring\n');
    expect(policy).toMatchObject({ code: 0, sent: ['DELETE /api/v1/auth/policies/monitoring'] });
    before = signer.received.length;
    const update = `auth policy update --name monitoring --rules '[{"effect":"allow"}]'`;
    const updated = await onTerminal(update, 'monitoring\n');
    expect(updated.screen).toContain(`At ${signer.url}:\r\nIts new rules replace all rules of the policy monitoring`);
    expect(updated).toMatchObject({ code: 0, sent: ['PUT /api/v1/auth/policies/monitoring'] });
    before = signer.received.length;
    expect(await onTerminal(update, 'y\n')).toMatchObject({ code: 7, sent: [] });
    const token = await onTerminal(`auth token revoke --accessor ${ACCESSOR}`, `${ACCESSOR}\n`);
    expect(token).toMatchObject({ code: 0, sent: [`DELETE /api/v1/auth/tokens/${ACCESSOR}`] });
    before = signer.received.length;
    expect(await onTerminal('auth policy delete --name monitoring', 'yes\n')).toMatchObject({ code: 7, sent: [] });
  });

  it('JSON cannot rewrite it: what could is escaped, and means the same', async () => {
    const { code, screen } = await onTerminal('auth token list --json', '');
    expect(screen).toContain('validator 7 \\u001b[2J\\u202egnp');
    expect(screen).not.toMatch(/\u202e/);
    expect(JSON.parse(screen).tokens).toHaveLength(2);
    expect(code).toBe(0);
  });

  it('--yes is not asked; a token is not typed on a terminal', async () => {
    const confirmed = await onTerminal('seal --yes', '');
    expect(confirmed).toMatchObject({ code: 0, sent: ['POST /api/v1/chamber/seal'] });
    expect(confirmed.screen).not.toContain('Type');
    const typed = await onTerminal('status --token -', '');
    expect(typed.screen).toContain('stdin is a terminal');
    expect(typed.code).toBe(1);
  });
});
