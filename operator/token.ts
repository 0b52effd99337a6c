// The token, from a variable, a file, stdin, or written out, which is visible to every user of the machine. It goes
// into one header and is written nowhere. It is a string because headers are strings; the process ends right after.

import { readFileSync, statSync } from 'node:fs';
import { note, type Terminal } from '../common/command-line/terminal.ts';
import { bounded } from '../common/command-line/text.ts';
import { errorCode } from '../common/formats/error-code.ts';
import { localFailure } from './exit.ts';
import { fileFailure } from './file-failure.ts';

const MAX_TOKEN_BYTES = 4096;
const MAX_PATH_CHARACTERS = 200;

export interface TokenSource {
  readonly text: string;
  readonly origin: string;
}

interface FoundToken {
  readonly token: string;
  readonly warning?: string;
}

export async function readToken(source: TokenSource, terminal: Terminal): Promise<string> {
  const { token, warning } = await locateToken(source, terminal);
  if (warning !== undefined) note(terminal, `warning: ${warning}`);
  return token;
}

export async function locateToken({ text, origin }: TokenSource, terminal: Terminal): Promise<FoundToken> {
  if (text === '-') return checked(await readStdin(terminal, origin), 'stdin');
  if (text.startsWith('env:')) {
    const variable = text.slice('env:'.length);
    const value = terminal.env[variable];
    if (value === undefined || value === '') {
      throw localFailure(
        `${origin}: the environment variable ${bounded(variable, 60)} is not set`,
        `export ${bounded(variable, 60)}, or name another source of the token`,
      );
    }
    return checked(value, `the environment variable ${variable}`);
  }
  const file = /^(?:@|file:)(.*)$/s.exec(text)?.[1];
  if (file !== undefined) return readTokenFile(file, origin);
  const isOnCommandLine = origin.startsWith('--');
  const warning = `${origin} holds the token itself, which other users can see; prefer env:VAR, @FILE or -`;
  return { ...checked(text, origin), ...(isOnCommandLine ? { warning } : {}) };
}

/** RFC 6750 where the token allows it; else Basic (specification/authorization.md#credentials). */
export function authorizationHeader(token: string): string {
  const isPlain = /^[\x21-\x7e]+$/.test(token);
  return isPlain ? `Bearer ${token}` : `Basic ${Buffer.from(`:${token}`, 'utf8').toString('base64')}`;
}

const NO_TOKEN_ADVICE = 'it has to hold the token and nothing else, on one line';

/** One trailing newline is the editor's. */
function checked(content: string, place: string): { readonly token: string } {
  const token = content.replace(/\r?\n$/, '');
  if (token === '') throw localFailure(`${place} holds no token`, NO_TOKEN_ADVICE);
  if (/\p{Cc}/u.test(token))
    throw localFailure(`${place} holds more than one line, or control characters`, NO_TOKEN_ADVICE);
  if (Buffer.byteLength(token) > MAX_TOKEN_BYTES)
    throw localFailure(`${place} holds more than a token`, NO_TOKEN_ADVICE);
  return { token };
}

function readTokenFile(path: string, origin: string): FoundToken {
  const shown = bounded(path, MAX_PATH_CHARACTERS);
  const [content, isShared] = readWithMode(path, `${origin}: the token file ${shown}`);
  const warning = `others may read the token file ${shown}`;
  return { ...checked(content, 'the token file'), ...(isShared ? { warning } : {}) };
}

function readWithMode(path: string, what: string): [content: string, isShared: boolean] {
  try {
    return [readFileSync(path, 'utf8'), (statSync(path).mode & 0o077) !== 0];
  } catch (error) {
    throw fileFailure(what, 'read', errorCode(error) ?? 'unreadable');
  }
}

async function readStdin({ stdin }: Terminal, origin: string): Promise<string> {
  if (stdin.isTTY)
    throw localFailure(`${origin} -: stdin is a terminal, and the token would show`, 'pipe the token in');
  let content = '';
  stdin.setEncoding('utf8');
  for await (const chunk of stdin as AsyncIterable<string>) {
    content += chunk;
    if (content.length > MAX_TOKEN_BYTES + 2) break; // refused as too long
  }
  return content;
}
