// What becomes of a signer whose log cannot be written: a full disk, a reader that is gone, one that has stopped. It
// starts, signs, says and counts what is lost, ends when it is told to, and goes on when lines are taken again. With
// audit.required no signature leaves without its audit line.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { cleanEnvironment, kill, tracked } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { freePort } from '../support/free-port.ts';
import { lacking } from '../support/needs.ts';
import { attestation, batchCall, call, randaoReveal, rootOf, signCall, testKey } from '../support/requests.ts';

const PROGRAM = join(import.meta.dirname, '../../bin/strongroom');
const GRACE_SECONDS = 3;
/** Of a machine under load; what hung before hung for good. */
const ENDS_WITHIN_MS = 60_000;
const KEY = testKey(0).publicKey;

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly token: string | null | undefined;
  /** What it has said on standard error. */
  said(): string;
  metric(name: string): Promise<number>;
  check(): Promise<Record<string, unknown>>;
}

let folder = '';
let running: Started | undefined;
const undo: (() => void)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-log-'));
});

afterEach(async () => {
  if (running !== undefined) await kill(running.child);
  running = undefined;
  for (const step of undo.splice(0).toReversed()) step();
  rmSync(folder, { recursive: true, force: true });
});

type Destination = number | 'pipe';

const COMMANDS = ['server', 'web3signer'] as const;

async function start(
  command: (typeof COMMANDS)[number],
  destination: Destination,
  config: Record<string, unknown> = {},
  waitFor: 'listening' | 'ready' = 'ready',
): Promise<Started> {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const deployment = deploy(2);
  undo.push(() => rmSync(deployment.folder, { recursive: true, force: true }));
  const file = join(deployment.folder, 'strongroom.yaml');
  const listen_address = '127.0.0.1';
  writeFileSync(
    file,
    stringify({
      ...deployment.config,
      server: { listen_address, listen_port: port, graceful_shutdown_timeout_seconds: GRACE_SECONDS },
      metrics: { listen_address, listen_port: metricsPort },
      logging: { format: 'json' },
      ...config,
    }),
  );
  const variables = {
    SVC_SERVER__LISTEN_ADDRESS: listen_address,
    SVC_SERVER__LISTEN_PORT: String(port),
    SVC_SERVER__GRACEFUL_SHUTDOWN_TIMEOUT_SECONDS: String(GRACE_SECONDS),
    SVC_METRICS__LISTEN_ADDRESS: listen_address,
    SVC_METRICS__LISTEN_PORT: String(metricsPort),
    SVC_ANTI_SLASHING__PATH: join(deployment.folder, 'slashing_protection.sqlite'),
  };
  const [args, env] =
    command === 'server'
      ? [['server', '-c', file], {}]
      : [['web3signer', `--key-store-path=${deployment.folder}/keys`, 'eth2', '--network=mainnet'], variables];
  const child = tracked(
    spawn(PROGRAM, args, { env: { ...cleanEnvironment(), ...env }, stdio: ['ignore', destination, 'pipe'] }),
  );
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const url = `http://127.0.0.1:${port}`;
  const token = command === 'server' ? undefined : null;
  running = {
    child,
    url,
    token,
    said: () => said,
    async metric(name) {
      const { text } = await call(`http://127.0.0.1:${metricsPort}/metrics`, { token: null });
      return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
    },
    async check() {
      const { json } = await call(`${url}/healthcheck`, { token: null });
      const checks = json['checks'] as Record<string, unknown>[];
      return { health: json['status'], ...checks.find(({ id }) => id === 'log') };
    },
  };
  const isThere = async (): Promise<number> => {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${said}`);
    const path = waitFor === 'ready' ? 'healthcheck' : 'upcheck';
    return (await call(`${url}/${path}`, { token: null }).catch(() => ({ status: 0 }))).status;
  };
  await expect.poll(isThere, { timeout: 60_000 }).toBe(200);
  return running;
}

const options = ({ token }: Started) => (token === undefined ? {} : { token });

async function signs(signer: Started, count: number): Promise<void> {
  const answers = Array.from({ length: count }, () => signCall(signer.url, KEY, randaoReveal(), options(signer)));
  for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
}

async function endsInTime({ child }: Started): Promise<void> {
  const startedAt = performance.now();
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
  expect(performance.now() - startedAt).toBeLessThan(ENDS_WITHIN_MS);
}

function pipe(): { readonly path: string; open(): number } {
  const path = join(folder, 'pipe');
  expect(spawnSync('mkfifo', [path]).status).toBe(0);
  return { path, open: () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK) };
}

/** Everything that is there now. */
function readAll(reader: number): string {
  const buffer = Buffer.alloc(1024 * 1024);
  let text = '';
  try {
    for (let count = 1; count > 0; ) {
      count = readSync(reader, buffer);
      text += buffer.toString('utf8', 0, count);
    }
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('EAGAIN');
  }
  return text;
}

/** Without one that a full disk has cut. */
const entries = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const LOST = 'svc_log_lines_dropped_total';

describe.skipIf(lacking('Linux')).each(COMMANDS)('strongroom %s', (command) => {
  it('starts, signs and ends with a log that cannot be written, and says so', async () => {
    const full = openSync('/dev/full', 'w');
    undo.push(() => closeSync(full));
    const signer = await start(command, full);
    await signs(signer, 50);
    expect(signer.said()).toContain(
      'strongroom: standard output, the log, cannot be written (ENOSPC): its lines are dropped and counted',
    );
    await expect.poll(() => signer.metric(LOST)).toBeGreaterThanOrEqual(50);
    expect(await signer.check()).toMatchObject({ health: 'UP', id: 'log', status: 'DEGRADED' });
    await endsInTime(signer);
    expect(signer.child.exitCode).toBe(0);
  });

  it('counts the lines after its reader is gone, and signs on', async () => {
    const signer = await start(command, 'pipe');
    const reader = signer.child.stdout as Readable;
    reader.resume();
    await signs(signer, 50);
    expect(await signer.metric(LOST)).toBe(0);
    const flood = signs(signer, 300);
    reader.destroy();
    await flood;
    await signs(signer, 50);
    await expect.poll(() => signer.metric(LOST)).toBeGreaterThanOrEqual(50);
    expect(await signer.check()).toMatchObject({ health: 'UP', status: 'DEGRADED' });
    await endsInTime(signer);
    expect(signer.child.exitCode).toBe(0);
  });

  it('waits for no reader that has stopped, and loses nothing when it goes on', async () => {
    const { path, open } = pipe();
    const reader = open();
    const writer = openSync(path, 'w');
    const signer = await start(command, writer);
    closeSync(writer);
    for (let round = 0; round < 10; round++) await signs(signer, 100); // several times what a pipe takes
    expect(await signer.metric(LOST)).toBe(0);
    expect(await signer.check()).toMatchObject({ health: 'UP', status: 'UP' });
    let text = '';
    const audited = () => {
      text += readAll(reader);
      return text.match(/RANDAO_REVEAL/g)?.length;
    };
    await expect.poll(audited, { timeout: 30_000 }).toBe(1000);
    await signs(signer, 500);
    await endsInTime(signer); // nobody reads
    closeSync(reader);
  });
});

describe.skipIf(lacking('Linux', 'root'))('on a disk that is full', () => {
  it('signs on, and writes again when there is room', async () => {
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk], { encoding: 'utf8' });
    expect(mounted.stderr).toBe('');
    undo.push(() => void spawnSync('umount', ['-l', disk]));
    const path = join(disk, 'log');
    const log = openSync(path, 'a');
    const signer = await start('server', log);
    closeSync(log);
    for (let round = 0; round < 10; round++) await signs(signer, 40);
    const written = () => entries(readFileSync(path, 'utf8')).filter(({ operation }) => operation === 'RANDAO_REVEAL');
    // Each line is on the disk, or counted.
    await expect.poll(async () => (await signer.metric(LOST)) + written().length).toBeGreaterThanOrEqual(400);
    expect(written().length).toBeLessThan(400);
    expect(await signer.check()).toMatchObject({ health: 'UP', status: 'DEGRADED' });
    truncateSync(path);
    await expect.poll(signer.check, { timeout: 30_000 }).toMatchObject({ status: 'UP' });
    await signs(signer, 10);
    await endsInTime(signer);
    expect(signer.child.exitCode).toBe(0);
    const lines = entries(readFileSync(path, 'utf8'));
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', msg: 'log lines were dropped' }));
    expect(written()).toHaveLength(10);
    expect(lines.at(-1)?.['msg']).toBe('stopped');
  });
});

it.skipIf(lacking('script'))('ends on a terminal that takes nothing', async () => {
  // `script` gives it a terminal, and stops reading as soon as nobody reads from itself.
  const { path, open } = pipe();
  const reader = open();
  const writer = openSync(path, 'w');
  const port = await freePort();
  const deployment = deploy(1);
  undo.push(() => rmSync(deployment.folder, { recursive: true, force: true }));
  const file = join(deployment.folder, 'strongroom.yaml');
  const address = { listen_address: '127.0.0.1' };
  const server = { ...address, listen_port: port, graceful_shutdown_timeout_seconds: GRACE_SECONDS };
  writeFileSync(file, stringify({ ...deployment.config, server, metrics: { ...address, listen_port: 0 } }));
  const pid = join(folder, 'pid');
  const shell = `echo $$ > ${pid}; exec ${PROGRAM} server -c ${file}`;
  const child = tracked(
    spawn('script', ['--quiet', '--command', shell, '/dev/null'], {
      env: cleanEnvironment(),
      stdio: ['pipe', writer, 'inherit'],
    }),
  );
  closeSync(writer);
  const url = `http://127.0.0.1:${port}`;
  const status = async () => (await call(`${url}/healthcheck`, { token: null }).catch(() => ({ status: 0 }))).status;
  await expect.poll(status, { timeout: 60_000 }).toBe(200);
  for (let round = 0; round < 5; round++) {
    const answers = Array.from({ length: 100 }, () => signCall(url, KEY, randaoReveal()));
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
  }
  const signer = Number(readFileSync(pid, 'utf8'));
  process.kill(signer, 'SIGTERM');
  const isThere = () => {
    try {
      process.kill(signer, 0);
      return !readFileSync(`/proc/${signer}/stat`, 'utf8').includes(') Z ');
    } catch {
      return false;
    }
  };
  await expect.poll(isThere, { timeout: ENDS_WITHIN_MS }).toBe(false);
  closeSync(reader);
  await kill(child);
});

describe('with audit.required', () => {
  const audit = { audit: { required: true } };
  const vote = (signer: Started, target: number, head: number) =>
    signCall(signer.url, KEY, attestation({ source: target - 1, target, head: rootOf(head) }), options(signer));

  it('the audit line is there before the signature', async () => {
    const path = join(folder, 'log');
    const log = openSync(path, 'a');
    const signer = await start('server', log, audit);
    closeSync(log);
    for (let target = 20; target < 40; target++) {
      const answer = await vote(signer, target, 1);
      expect(answer.status).toBe(200);
      const lines = entries(readFileSync(path, 'utf8')).filter(
        ({ request_id }) => request_id === answer.headers.get('x-request-id'),
      );
      expect(lines).toMatchObject([{ audit: true, outcome: 'ok', status: 200, target_epoch: target }]);
    }
    const batch = await batchCall(signer.url, [KEY, testKey(1).publicKey, testKey(7).publicKey], randaoReveal());
    const ofBatch = () =>
      entries(readFileSync(path, 'utf8')).filter(({ request_id }) => request_id === batch.headers.get('x-request-id'));
    expect(ofBatch()).toMatchObject([
      { outcome: 'refused', reason: 'unknown_key' },
      { outcome: 'ok', keys: 3, signed: 2, refused: 1 },
    ]);
    expect((await vote(signer, 39, 2)).status).toBe(412);
    await endsInTime(signer);
    const [audits, ids] = [entries(readFileSync(path, 'utf8')).filter((line) => line['audit']), new Set()];
    for (const { request_id } of audits.filter(({ keys }) => keys === undefined)) ids.add(request_id);
    expect(ids.size + 1).toBe(audits.length); // one line a request, and one of a key beside the batch's
  });

  it('nothing is signed, and nothing recorded, while the log cannot be written', async () => {
    const { path, open } = pipe();
    let reader = open();
    const writer = openSync(path, 'w');
    const signer = await start('server', writer, audit);
    closeSync(writer);
    expect((await vote(signer, 20, 1)).status).toBe(200);
    closeSync(reader);
    const first = await vote(signer, 21, 1); // its line is the first that nobody takes
    expect([first.status, first.json['reason']]).toEqual([503, 'audit_unavailable']);
    for (let target = 22; target < 30; target++) {
      expect((await vote(signer, target, 1)).json['reason']).toBe('audit_unavailable');
    }
    const batch = await batchCall(signer.url, [KEY], randaoReveal());
    expect([batch.status, batch.json['reason']]).toEqual([503, 'audit_unavailable']);
    expect(await signer.check()).toMatchObject({ health: 'DOWN', id: 'log', status: 'DOWN' });
    reader = open();
    await expect.poll(signer.check).toMatchObject({ health: 'UP', status: 'UP' });
    // What was refused before it was signed is in no record: another vote for its target is signed.
    for (let target = 22; target < 30; target++) expect((await vote(signer, target, 2)).status).toBe(200);
    expect((await vote(signer, 29, 1)).status).toBe(412);
    const lines = entries(readAll(reader));
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'log lines were dropped' }));
    const signed = lines.filter(({ outcome }) => outcome === 'ok').map(({ target_epoch }) => target_epoch);
    expect(signed).toEqual([20, 22, 23, 24, 25, 26, 27, 28, 29]);
    closeSync(reader);
  });

  it('a reader that has stopped holds signatures back for seconds, then has them refused, until it goes on', async () => {
    const { path, open } = pipe();
    const reader = open();
    const writer = openSync(path, 'w');
    const signer = await start('server', writer, { ...audit, logging: { format: 'json', level: 'debug' } });
    closeSync(writer);
    const answers: number[] = [];
    for (let round = 0; !answers.includes(503) && round < 100; round++) {
      const flood = Array.from({ length: 20 }, () => signCall(signer.url, KEY, randaoReveal()));
      for (const { status } of await Promise.all(flood)) answers.push(status);
    }
    expect(answers.at(-1)).toBe(503);
    expect(await signer.check()).toMatchObject({ health: 'DOWN', status: 'DOWN' });
    expect((await vote(signer, 20, 1)).json['reason']).toBe('audit_unavailable');
    let text = '';
    const reading = setInterval(() => {
      text += readAll(reader);
    }, 5);
    undo.push(() => clearInterval(reading));
    await expect.poll(signer.check).toMatchObject({ health: 'UP', status: 'UP' });
    expect((await vote(signer, 20, 2)).status).toBe(200);
    await endsInTime(signer);
    clearInterval(reading);
    text += readAll(reader);
    const signed = entries(text).filter(({ operation, outcome }) => operation === 'RANDAO_REVEAL' && outcome === 'ok');
    expect(signed.length).toBeGreaterThanOrEqual(answers.filter((status) => status === 200).length);
    expect(await signer.metric(LOST).catch(() => 0)).toBe(0);
    closeSync(reader);
  });
});
