// A unit of systemd that runs a signer, and its journal: `systemctl` and `journalctl` as a reader of the pages has them
// on the machine of a signer. The signer is the real program. Only the words that pages use are known; a time of
// `--since` counts from the world's present, which a rehearsal can move instead of waiting.

import { randomUUID } from 'node:crypto';
import { get } from 'node:http';
import { parseArgs } from 'node:util';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { type Program, Refused } from './programs.ts';

type Until = 'ready' | 'listening';

const PORT = 9000;
/** The first of the id of requests whose lines say how far the log is written. No reader of the journal sees them. */
const MARK = 'mark-of-the-journal-';

export interface Unit {
  /** Undefined while nothing runs, also when the process died. */
  readonly signer: RunningSigner | undefined;
  /** Until its keys are loaded, or only until it listens: a sealed one loads none. */
  start(until?: Until): Promise<void>;
  stop(): Promise<void>;
  /** It dies, and nobody starts it again. */
  kill(): Promise<void>;
  hangUp(): Promise<void>;
  readonly journal: readonly string[];
  /** Until the journal has what it has said by now: a signer writes its log a moment later. */
  written(): Promise<void>;
}

/** @param address of the signer, which listens on port 9000 */
export function createUnit(address: string, run: (waitFor: Until) => Promise<RunningSigner>): Unit {
  let running: RunningSigner | undefined;
  const said: string[] = [];
  const keep = (text: string): void => void said.push(...text.split('\n').filter((line) => line !== ''));
  const alive = (): RunningSigner | undefined => {
    if (running !== undefined && !isAlive(running.pid)) end();
    return running;
  };
  const end = (): void => {
    keep(running?.output() ?? '');
    running = undefined;
  };
  return {
    get signer() {
      return alive();
    },
    get journal() {
      const lines = [...said, ...(running?.output().split('\n') ?? [])];
      return lines.filter((line) => line !== '' && !line.includes(MARK));
    },
    async written() {
      const signer = alive();
      if (signer === undefined) return;
      try {
        await markLog(signer, address);
      } catch (error) {
        if (alive() !== undefined) throw error; // one that ended meanwhile has written everything
      }
    },
    async start(until = 'ready') {
      if (alive() !== undefined) return;
      try {
        running = await run(until);
      } catch (error) {
        keep(String(error));
        throw new Refused(`Job for strongroom.service failed.\n${error}`, 1);
      }
    },
    async stop() {
      await alive()?.stop();
      end();
    },
    async kill() {
      await alive()?.kill();
      end();
    },
    async hangUp() {
      const signer = alive();
      if (signer === undefined) throw new Refused('strongroom.service is not active, cannot reload.', 1);
      process.kill(signer.pid, 'SIGHUP');
    },
  };
}

/** The log is written in order: with the line of a request everything before it is there. */
async function markLog(signer: RunningSigner, address: string): Promise<void> {
  const id = `${MARK}${randomUUID()}`;
  await new Promise((resolve, reject) => {
    const options = { host: address, port: PORT, path: '/api/v1/chamber/status', agent: false };
    get({ ...options, headers: { 'x-request-id': id } }, (response) => response.resume().on('close', resolve)).on(
      'error',
      reject,
    );
  });
  await signer.logged('request', { request_id: id });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export function systemctlProgram(unit: Unit): Program {
  const verbs: Readonly<Record<string, () => Promise<string>>> = {
    start: async () => said(unit.start('listening')),
    stop: async () => said(unit.stop()),
    restart: async () => said(unit.stop().then(() => unit.start('listening'))),
    reload: async () => said(unit.hangUp()),
    'is-active': async () => {
      if (unit.signer === undefined) throw new Refused('inactive', 3);
      return 'active\n';
    },
  };
  return async ([verb = '', name, ...rest]) => {
    const known = verbs[verb];
    if (known === undefined || rest.length > 0) throw new Refused(`systemctl: no stand-in for: ${verb} ${rest}`);
    if (name === 'chronyd' && verb === 'restart') return '';
    if (name !== 'strongroom') throw new Refused(`Unit ${name}.service not found.`, 5);
    return known();
  };
}

const said = async (done: Promise<void>): Promise<string> => done.then(() => '');

/** @param offset of the machine's clock, in milliseconds */
export function chronycProgram(offset: { get(): number; set(milliseconds: number): void }): Program {
  return async ([command = '', ...args]) => {
    const seconds = Math.abs(offset.get()) / 1000;
    if (command === 'tracking') {
      const side = offset.get() < 0 ? 'slow' : 'fast';
      return `System time     : ${seconds.toFixed(9)} seconds ${side} of NTP time\nLeap status     : Normal\n`;
    }
    if (command === 'makestep') {
      offset.set(0);
      return '200 OK\n';
    }
    if (command !== 'waitsync') throw new Refused(`chronyc: no stand-in for: ${command}`);
    if (seconds > Number(args[1])) throw new Refused(`try: ${args[0]}, correction: ${seconds}`, 1);
    return `try: 1, refid: C0000201, correction: ${seconds}, skew: 0.001\n`;
  };
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3600, d: 86_400 };
const TEXT = { type: 'string' } as const;
const OPTIONS = {
  unit: { ...TEXT, short: 'u' },
  output: { ...TEXT, short: 'o' },
  lines: { ...TEXT, short: 'n' },
  since: TEXT,
};

export function journalctlProgram(unit: Unit, now: () => number): Program {
  return async (args) => {
    // Its `--since` takes the next word, whatever that begins with.
    const joined = args.join('\n').replaceAll('--since\n', '--since=').split('\n');
    const { values } = parseArgs({ args: joined, options: OPTIONS });
    if (values.unit !== 'strongroom' || values.output !== 'cat') throw new Refused('journalctl: -u strongroom -o cat');
    await unit.written();
    const from = values.since === undefined ? 0 : now() - agoOf(values.since);
    let time = 0;
    const lines = unit.journal.filter((line) => {
      time = timeOf(line) ?? time;
      return time >= from;
    });
    const shown = values.lines === undefined ? lines : lines.slice(-Number(values.lines));
    return shown.map((line) => `${line}\n`).join('');
  };
}

function agoOf(since: string): number {
  const [, count = '', unit = ''] = /^-(\d+)(s|min|h|d)$/.exec(since) ?? [];
  const seconds = SECONDS[unit];
  if (seconds === undefined) throw new Refused(`Failed to parse timestamp: ${since}`, 1);
  return Number(count) * seconds * 1000;
}

/** What is no JSON came with the line before. */
function timeOf(line: string): number | undefined {
  const [, time] = /^\{.*"time":"([^"]+)"/.exec(line) ?? [];
  return time === undefined ? undefined : Date.parse(time);
}
