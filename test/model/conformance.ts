// Replays traces of real stores (signer/slashing/traced-store.ts) against the rules of the model: trace.pml in Spin. A
// trace is cut into one for each key and kind of message, because only tenures, floors and files are common to both.
// Slots and epochs become small numbers in the same order, roots the numbers of those at their place.

import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const FOLDER = import.meta.dirname;
/** As in trace.pml. */
const PLACES = 200;
const MAX_CALLS = 4_000;
/** 2^18 places for states: a search has fewer, and to clear the 128 MB of the default takes longer than it. */
export const HASH_TABLE = '-w18';
const VERDICTS: Readonly<Record<string, number>> = {
  safe: 1,
  repeat: 2,
  key_retired: 3,
  double_block: 4,
  double_vote: 4,
  surrounding_vote: 5,
  surrounded_vote: 6,
  source_below_low_water_mark: 7,
  target_below_low_water_mark: 8,
  block_below_low_water_mark: 8,
  source_after_target: 9,
  // Nothing is recorded: slashing_rollback, slashing_integrity.
};
const NOT_RECORDED = 10;
const NOT_BEGUN = 255;
const STRATEGIES: Readonly<Record<string, number>> = { by_key: 0, minimal: 1, complete: 2 };
const ROOTLESS = 3;

export interface StoreTrace {
  readonly store: string;
  /** It keeps the highest marks only. */
  readonly isMarks: boolean;
  /** As the log has them, in order; `call` is a number that no two calls have. */
  // biome-ignore lint/suspicious/noExplicitAny: lines of a log
  readonly lines: readonly any[];
}

interface Entry {
  readonly source: number;
  readonly place: number;
  readonly root: string | null;
}

interface Call {
  readonly kind: number;
  readonly message?: Entry;
  readonly tenure?: number;
  answer?: number;
  hasFailed?: boolean;
  readonly strategy?: number;
  entries?: readonly Entry[];
}

type Kind = 'block' | 'vote';

interface KeyTrace {
  readonly name: string;
  readonly isMarks: boolean;
  readonly calls: Call[];
  readonly events: (readonly [call: number, isEnd: 0 | 1])[];
}

/** The traces of each key, which the checker reads one by one. */
export function keyTraces({ store, isMarks, lines }: StoreTrace): KeyTrace[] {
  const keys = new Set<string>();
  for (const line of lines) for (const message of line.check ?? []) keys.add(message.public_key);
  return [...keys].flatMap((key) =>
    (['block', 'vote'] as const).map((kind) => keyTrace({ store, isMarks, lines }, key, kind)),
  );
}

function keyTrace({ store, isMarks, lines }: StoreTrace, key: string, kind: Kind): KeyTrace {
  const calls: Call[] = [];
  const events: [number, 0 | 1][] = [];
  /** Of the log's call: its number here, and which of its messages is of this key. */
  const open = new Map<number, { readonly call: number; readonly place: number }>();
  for (const line of lines) {
    if (line.end === undefined && line.failed === undefined) {
      const found = callOf(line, key, kind);
      if (found === undefined || calls.length >= MAX_CALLS) continue;
      open.set(line.call, { call: calls.length, place: found.place });
      events.push([calls.length, 0]);
      calls.push(found.call);
      continue;
    }
    const begun = open.get(line.call);
    if (begun === undefined) continue;
    open.delete(line.call);
    finish(calls[begun.call] as Call, line, { key, kind, place: begun.place });
    events.push([begun.call, 1]);
  }
  // What has no answer failed, as far as the trace goes.
  for (const { call } of open.values()) (calls[call] as Call).hasFailed = true;
  return { name: `${store} ${key} ${kind}`, isMarks, calls, events };
}

// biome-ignore lint/suspicious/noExplicitAny: a line of a log
function callOf(line: any, key: string, kind: Kind): { readonly call: Call; readonly place: number } | undefined {
  if (line.check !== undefined) {
    const place = line.check.findIndex(
      // biome-ignore lint/suspicious/noExplicitAny: a line of a log
      (message: any) => message.public_key === key && (message.slot !== undefined) === (kind === 'block'),
    );
    if (place < 0) return undefined;
    const message = line.check[place];
    return { call: { kind: 1, message: entryOf(message), tenure: message.tenure }, place };
  }
  if (line.end_tenures !== undefined)
    return line.end_tenures.includes(key) ? { call: { kind: 2 }, place: 0 } : undefined;
  if (line.begin_tenures !== undefined) {
    const from = new Map<string, number>(line.begin_tenures).get(key);
    return from === undefined ? undefined : { call: { kind: 3, tenure: from }, place: 0 };
  }
  if (line.jump !== undefined) {
    const { slot, source_epoch, target_epoch } = line.jump;
    const message =
      kind === 'block'
        ? { source: 0, place: slot, root: null }
        : { source: source_epoch, place: target_epoch, root: null };
    return { call: { kind: 4, message }, place: 0 };
  }
  if (line.import !== undefined) return { call: { kind: 5, strategy: STRATEGIES[line.import] ?? 0 }, place: 0 };
  return line.prune === undefined ? undefined : { call: { kind: 6 }, place: 0 };
}

// biome-ignore lint/suspicious/noExplicitAny: a member of a line of a log
function entryOf(message: any): Entry {
  const root = message.root;
  if (message.slot !== undefined) return { source: 0, place: message.slot, root };
  return { source: message.source_epoch, place: message.target_epoch, root };
}

interface Part {
  readonly key: string;
  readonly kind: Kind;
  readonly place: number;
}

// biome-ignore lint/suspicious/noExplicitAny: a line of a log
function finish(call: Call, line: any, { key, kind, place }: Part): void {
  if (line.failed === true) {
    call.hasFailed = true;
    // Nobody knows what the store had read of the file.
    if (call.kind === 5) call.entries = [];
    return;
  }
  if (call.kind === 1) call.answer = VERDICTS[line.end.verdicts[place]] ?? NOT_RECORDED;
  if (call.kind === 2) call.answer = new Map<string, number>(line.end.tenures).get(key) ?? NOT_BEGUN;
  if (call.kind === 3) call.answer = new Map<string, number>(line.end.tenures).get(key) ?? NOT_BEGUN;
  if (call.kind !== 5) return;
  call.entries = line.end.histories
    // biome-ignore lint/suspicious/noExplicitAny: a member of a line of a log
    .filter((history: any) => history.public_key === key)
    // biome-ignore lint/suspicious/noExplicitAny: a member of a line of a log
    .flatMap((history: any) => (kind === 'block' ? history.blocks : history.votes).map(entryOf));
}

/** What trace.pml reads; undefined when it has more places than the checker. */
export function numbersOf({ isMarks, calls, events }: KeyTrace): string | undefined {
  const all = calls.flatMap(({ message, entries = [] }) => (message === undefined ? entries : [message, ...entries]));
  const values = [...new Set(all.flatMap(({ source, place }) => [source, place]))].sort((one, other) => one - other);
  const numbers = new Map(values.filter((value) => value > 0).map((value, index) => [value, index + 1]));
  if (numbers.size > PLACES) return undefined;
  const number = (value: number): number => numbers.get(value) ?? 0;
  const roots = new Map<string, number>();
  const ofPlace = new Map<number, number>();
  const rootOf = ({ place, root }: Entry): number => {
    if (root === null) return ROOTLESS;
    const name = `${place} ${root}`;
    const known = roots.get(name);
    if (known !== undefined) return known;
    const next = (ofPlace.get(place) ?? 0) + 1;
    const given = next === ROOTLESS ? next + 1 : next;
    ofPlace.set(place, given);
    roots.set(name, given);
    return given;
  };
  const entries: string[] = [];
  const text = calls.map((call) => {
    const {
      kind,
      message = { source: 0, place: 0, root: null },
      tenure = 0,
      answer = 0,
      hasFailed,
      strategy = 0,
    } = call;
    const first = entries.length;
    for (const entry of call.entries ?? [])
      entries.push(`${number(entry.source)} ${number(entry.place)} ${rootOf(entry)}`);
    const count = entries.length - first;
    const flags = `${hasFailed === true ? 1 : 0} ${first} ${count} ${strategy}`;
    return `${kind} ${number(message.source)} ${number(message.place)} ${rootOf(message)} ${tenure} ${answer} ${flags}`;
  });
  const head = `${isMarks ? 1 : 0} ${events.length} ${calls.length} ${entries.length}`;
  return [head, ...text, ...events.map(([call, isEnd]) => `${call} ${isEnd}`), ...entries].join('\n');
}

export interface TraceChecker extends AsyncDisposable {
  /** Whether some order of the calls that overlap makes every answer that of the rules. */
  isAccepted(trace: KeyTrace): Promise<boolean | 'too long'>;
}

/** Compiles the checker; needs spin and gcc. */
export async function traceChecker(): Promise<TraceChecker> {
  const build = join(FOLDER, '../../build/model');
  mkdirSync(build, { recursive: true });
  const directory = mkdtempSync(join(build, 'trace-'));
  for (const file of ['rules.pml', 'trace.pml']) copyFileSync(join(FOLDER, file), join(directory, file));
  await run('spin', ['-a', 'trace.pml'], { cwd: directory });
  const flags = ['-O1', '-w', '-DSAFETY', '-DNOCLAIM', '-DVECTORSZ=8192', '-DMEMLIM=1500'];
  await run('gcc', [...flags, '-o', 'pan', 'pan.c'], { cwd: directory });
  let traces = 0;
  return {
    async isAccepted(trace) {
      const numbers = numbersOf(trace);
      if (numbers === undefined) return 'too long';
      traces += 1;
      const file = join(directory, `${traces}.txt`);
      writeFileSync(file, `${numbers}\n`);
      const { stdout } = await run('./pan', ['-E', '-m100000', HASH_TABLE], {
        cwd: directory,
        env: { ...process.env, TRACE: file },
      });
      const isFound = /assertion violated/.test(stdout);
      // A search that was cut short rejects nothing.
      if (!isFound && /max search depth too small|out of memory|Search not completed/.test(stdout)) return 'too long';
      return isFound;
    },
    async [Symbol.asyncDispose]() {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
