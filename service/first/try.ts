// `strongroom try`: a signer with a new TEST key in a temporary folder, on loopback ports of its own. It signs a vote,
// refuses one that would be slashed, and ends; the folder goes with it. It is the real boot with the real store, in
// this process: nothing but the program itself has to be installed. What it does not answer as it should ends it.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { painter, type Tone } from '../../common/command-line/paint.ts';
import { command } from '../../common/command-line/program.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { columnsOf, wrap } from '../../common/command-line/wrap.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { systemClock } from '../../common/observe/clock.ts';
import { createLogger } from '../../common/observe/logger.ts';
import { VERSION } from '../../signer/api/version.ts';
import { type BootedSigner, boot } from '../../signer/boot/boot.ts';
import { loadConfig } from '../config/load.ts';
import { SERVICE_PARTS } from '../parts.ts';
import { FirstStepFailure } from './failure.ts';
import { pathLine } from './path-line.ts';
import { EPOCH, hoodiVote } from './vote.ts';

const OWNER_ONLY = { file: 0o600, folder: 0o700 } as const;
const SHORT = { first: 10, last: 6 } as const;
/** Lines of the signer's log that are shown when it does not start. */
const MAX_LOG_LINES = 5;

export const tryIt = command(
  {
    summary: 'See a signature and a refusal: a signer with a TEST key, for some seconds, which leaves nothing behind',
    notes: [
      'The signer listens on loopback ports that are free, keeps its records in a temporary folder (TMPDIR), and asks ' +
        'nothing of the network. No key of yours is read.',
    ],
    examples: ['strongroom try'],
  },
  async (_words, terminal: Terminal) => {
    const began = performance.now();
    const folder = temporaryFolder();
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    const end = (): void => process.exit(EXIT.failed);
    process.once('exit', remove).once('SIGINT', end).once('SIGTERM', end);
    const say = storyteller(terminal);
    say.line(`strongroom ${VERSION}: a signer with a TEST key, on this machine alone`);
    try {
      const token = `sr_client_${randomBytes(32).toString('base64url')}`;
      const { signer, url } = await start(folder, token);
      try {
        await tell(say, url, token);
      } finally {
        await signer.shutDown();
      }
    } finally {
      remove();
      process.off('exit', remove).off('SIGINT', end).off('SIGTERM', end);
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    say.line(`\nDone in ${seconds} s. The signer has ended; its key and its records are gone.\n`);
    say.line(`Next\n${onPath()}${NEXT}`);
  },
);

function onPath(): string {
  const line = pathLine(process.argv[1], process.env['PATH']);
  return line === undefined ? '' : `  ${line}\n`;
}

const NEXT = `  strongroom init                  write a configuration, folders and tokens of your own, for new keys
  strongroom migrate --help        bring keys that have signed elsewhere, with their record
  strongroom server --check -c …   find what would stop a start
  strongroom help                  the other programs: slashing records, an operator's commands, enclaves
  docs/README.md                   a path for each reader, beside the program`;

async function tell(say: Storyteller, url: string, token: string): Promise<void> {
  const keys = await ask(`${url}/api/v1/eth2/publicKeys`, token);
  const [publicKey = ''] = JSON.parse(keys.text) as readonly string[];
  say.step('Start', `a signer for the test network Hoodi, with one new TEST key\n${url}\n${publicKey}`);

  const path = `/api/v1/eth2/sign/${publicKey}`;
  const sign = (payload: 'empty' | 'full', sent?: string): Promise<Answer> =>
    ask(`${url}${path}`, sent, hoodiVote(payload));

  const signed = await sign('full', token);
  const { signature = '' } = JSON.parse(signed.text) as { readonly signature?: string };
  say.step('Sign', `a vote for epoch ${EPOCH}:  POST ${short(path, '/api/v1/eth2/sign/')}`);
  say.answer(expected(signed, 200), `the signature ${short(signature)}`);

  say.step('Refuse', `a second vote for epoch ${EPOCH}, which says something else: it would be slashed`);
  say.answer(expected(await sign('empty', token), 412));

  say.step('Repeat', 'the first vote, as a validator client does that lost the answer');
  const repeated = expected(await sign('full', token), 200);
  say.answer(repeated, repeated.text === signed.text ? 'the same signature' : 'another signature');

  say.step('Deny', 'the same without a token');
  say.answer(expected(await sign('full'), 401));
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(url: string, token: string | undefined, body?: object): Promise<Answer> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const request = httpRequest(url, {
    agent: new Agent(), // fetch and the common agent go by the proxy of NODE_USE_ENV_PROXY
    method: body === undefined ? 'GET' : 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json', ...authorization },
  });
  request.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, text: await text(response) };
}

function expected(answer: Answer, status: number): Answer {
  if (answer.status === status) return answer;
  throw new FirstStepFailure(`the signer answered ${answer.status} instead of ${status}: ${answer.text}`, [
    'this is a bug of this release or a fault of this machine: please report it',
  ]);
}

/** @throws FirstStepFailure */
function temporaryFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'strongroom-try-'));
  } catch (error) {
    const code = errorCode(error) ?? 'unknown';
    throw new FirstStepFailure(`no temporary folder can be made in ${tmpdir()} (${code})`, [
      'name one that can be written: TMPDIR=FOLDER strongroom try',
      ...(code === 'EROFS' ? ['a container that runs with --read-only needs --tmpfs /tmp'] : []),
    ]);
  }
}

async function start(folder: string, token: string): Promise<{ readonly signer: BootedSigner; readonly url: string }> {
  const keys = join(folder, 'keys');
  mkdirSync(keys, { mode: OWNER_ONLY.folder });
  const descriptor = `# A TEST key of strongroom try.\ntype: file-raw\nkeyType: BLS\nprivateKey: "${testSecret()}"\n`;
  writeFileSync(join(keys, 'test-key.yaml'), descriptor, { mode: OWNER_ONLY.file });
  const loaded = loadConfig(
    { argv: ['-c', 'strongroom.yaml'], env: {}, readFile: () => Buffer.from(configuration(folder, token)) },
    { compiledCeremony: false },
  );
  if (!loaded.ok) throw new Error(`the configuration of the try has ${loaded.violations.length} violations`);
  const log: string[] = [];
  const logger = createLogger(loaded.config.logging, { write: (line) => log.push(line) });
  try {
    const signer = await boot(loaded.config, SERVICE_PARTS, { logger, clock: systemClock });
    await signer.keysLoaded;
    return { signer, url: `http://127.0.0.1:${signer.listeners.http.port}` };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new FirstStepFailure(`the signer cannot start: ${message}`, log.slice(-MAX_LOG_LINES).map(String));
  }
}

/** Below the order of the group, whose first byte is 0x73, and not zero: any such number is a secret key. */
function testSecret(): string {
  const secret = randomBytes(32);
  secret[0] = 0x3f & (secret[0] ?? 0);
  secret[31] = 0x01 | (secret[31] ?? 0);
  return `0x${secret.toString('hex')}`;
}

function configuration(folder: string, token: string): string {
  return JSON.stringify({
    network: 'hoodi',
    server: { listen_address: '127.0.0.1', listen_port: 0 },
    metrics: { listen_address: '127.0.0.1', listen_port: 0 },
    key_sources: { filesystem: { paths: [join(folder, 'keys')] } },
    anti_slashing: { backend: 'sqlite', path: join(folder, 'slashing_protection.sqlite') },
    logging: { level: 'warn', format: 'text' },
    static_auth: {
      policies: [{ name: 'try', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] }],
      tokens: [{ name: 'try', secret: token, policies: ['try'] }],
    },
  });
}

interface Storyteller {
  line(text: string): void;
  step(name: string, text: string): void;
  answer(answer: Answer, text?: string): void;
}

const MARGIN = 10;

/** Steps with a name in the margin; the status of an answer alone is coloured. */
function storyteller({ stdout, env }: Terminal): Storyteller {
  const paint = painter(stdout, env);
  const columns = columnsOf(stdout);
  const indented = (text: string, first: string): string =>
    text
      .split('\n')
      .flatMap((line) => wrap(line, columns - MARGIN, 'whole words'))
      .map((line, at) => (at === 0 ? first : '').padEnd(MARGIN) + line)
      .join('\n');
  return {
    line: (text) => void stdout.write(`${text}\n`),
    step: (name, text) => void stdout.write(`\n${indented(text, name)}\n`),
    answer({ status, text }, said = text) {
      const tone: Tone = status === 200 ? 'good' : 'bad';
      const [first = '', ...rest] = indented(said, '').split('\n');
      const status_ = paint(String(status), tone);
      stdout.write(
        `${' '.repeat(MARGIN)}${status_}  ${first.trimStart()}\n${rest.map((line) => `${line}\n`).join('')}`,
      );
    },
  };
}

/** The beginning and the end of a long hex text, behind what stands before it. */
function short(text: string, before = ''): string {
  const hex = text.slice(before.length);
  return `${before}${hex.slice(0, SHORT.first)}…${hex.slice(-SHORT.last)}`;
}
