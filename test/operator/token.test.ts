// Where the operator's token comes from: a file has two spellings, and neither is sent as the token itself.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { readToken } from '../../operator/token.ts';

const TOKEN = 'TEST_TOKEN_of_an_operator_0001';
const terminal = { env: {}, stdin: new PassThrough(), stderr: new PassThrough() } as unknown as Terminal;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-token-'));
  writeFileSync(join(folder, 'token'), `${TOKEN}\n`, { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each(['@', 'file:'])('%sFILE is what the file holds', async (spelling) => {
  const text = `${spelling}${join(folder, 'token')}`;
  await expect(readToken({ text, origin: '--token' }, terminal)).resolves.toBe(TOKEN);
});

it.each(['@', 'file:'])('%sFILE of a file that is not there is refused', async (spelling) => {
  const text = `${spelling}${join(folder, 'nothing')}`;
  await expect(readToken({ text, origin: '--token' }, terminal)).rejects.toThrow(/cannot be read \(ENOENT\)/);
});
