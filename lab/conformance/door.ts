// The door: what a validator client meets before and beside a signature. Its URL has a slash too many, it asks for JSON
// or for text, its list of keys is whole or does not come, through a reload and a restart.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import type { Skip } from './case.ts';

interface Door {
  readonly url: string;
  readonly keys: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** A program that restarts the signer, and ends when it serves. */
  readonly restart?: readonly [string, ...string[]] | undefined;
}

interface DoorFinding {
  readonly name: string;
  /** What is not right; empty when it is. */
  readonly says: string;
}

const LIST = '/api/v1/eth2/publicKeys';
const RELOAD = '/reload';
const ASKED_DURING_A_RELOAD = 50;
const ANSWER_MS = 90_000;

/** Undefined when the connection ended without an answer, or there was none. */
type Answer = { readonly status: number; readonly type: string; readonly text: string } | undefined;
type Judge = (answer: Answer) => boolean;

export async function askDoor(door: Door): Promise<{ findings: readonly DoorFinding[]; skipped: readonly Skip[] }> {
  const findings: DoorFinding[] = [];
  const skipped: Skip[] = [];
  const note = (name: string, answer: Answer, isRight: Judge): void => {
    const shown = answer === undefined ? 'no answer' : `${answer.status} ${answer.type} ${answer.text.slice(0, 100)}`;
    findings.push({ name, says: isRight(answer) ? '' : shown });
  };
  const isList: Judge = (answer) => hasAll(answer, door.keys);
  const isUp: Judge = (answer) => answer?.status === 200 && answer.text === 'OK';
  /** A client reads an error as an empty list, and never asks again. */
  const isListOrNothing: Judge = (answer) => answer === undefined || answer.status === 401 || isList(answer);

  for (const path of ['/upcheck', '//upcheck', '/upcheck/']) note(`GET ${path}`, await ask(door, path), isUp);
  for (const accept of ['application/json', 'text/plain', '*/*', undefined]) {
    const headers = accept === undefined ? {} : { accept };
    note(`GET /upcheck, Accept ${accept}`, await ask(door, '/upcheck', { headers }), isUp);
    note(`the list of keys, Accept ${accept}`, await ask(door, LIST, { headers }), isList);
  }
  for (const path of [`/${LIST}`, `${LIST}/`]) note(`GET ${path}`, await ask(door, path), isList);
  const foreign = { authorization: 'Bearer of-another-service' };
  note('the list of keys for a token that is none', await ask(door, LIST, { headers: foreign }), isListOrNothing);

  const reload = await ask(door, RELOAD, { method: 'POST' });
  if (reload === undefined || reload.status >= 400) {
    skipped.push({ group: 'door', what: 'POST /reload', why: `the answer is ${reload?.status ?? 'none'}` });
  } else {
    const lists = await Promise.all(Array.from({ length: ASKED_DURING_A_RELOAD }, () => ask(door, LIST)));
    note('the list of keys during a reload', lists.find((one) => !isList(one)) ?? lists[0], isList);
  }
  if (door.restart === undefined) {
    skipped.push({ group: 'door', what: 'a restart', why: 'give the program that restarts the signer ("restart")' });
  } else {
    const answers = await duringRestart(door, door.restart);
    note(
      'the list of keys during a restart',
      answers.find((one) => !isListOrNothing(one)),
      isListOrNothing,
    );
    note('the list of keys after a restart', await ask(door, LIST), isList);
  }
  return { findings, skipped };
}

async function duringRestart(door: Door, [program, ...args]: readonly [string, ...string[]]): Promise<Answer[]> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  child.on('error', () => undefined); // it has no pid then
  const answers: Answer[] = [];
  while (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    answers.push(await ask(door, LIST));
    await pause(10); // a client asks again; where nobody listens, not in a loop
  }
  if (child.exitCode === 0) return answers;
  throw new Error(`${program} ended with ${child.exitCode ?? child.signalCode ?? 'no start'}: nothing was restarted`);
}

function hasAll(answer: Answer, keys: readonly string[]): boolean {
  if (answer?.status !== 200 || !answer.type.startsWith('application/json')) return false;
  try {
    const listed: unknown = JSON.parse(answer.text);
    return Array.isArray(listed) && keys.every((key) => listed.includes(key.toLowerCase()));
  } catch {
    return false;
  }
}

/** The path goes out as it is written: fetch would normalise it. */
async function ask({ url, headers }: Door, path: string, options: { method?: string; headers?: object } = {}) {
  const { protocol, hostname, port, pathname } = new URL(url);
  const request = protocol === 'https:' ? httpsRequest : httpRequest;
  const asked = request({
    ...{ hostname, port, path: `${pathname === '/' ? '' : pathname}${path}`, agent: false, timeout: ANSWER_MS },
    ...{ method: options.method ?? 'GET', headers: { ...headers, ...options.headers } },
  });
  asked.on('timeout', () => asked.destroy());
  asked.end();
  try {
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const type = answer.headers['content-type'] ?? '';
    return { status: answer.statusCode ?? 0, type, text: await text(answer) };
  } catch {
    return undefined;
  }
}
