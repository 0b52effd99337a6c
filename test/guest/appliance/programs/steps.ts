// The life of an appliance as its users see it, in order: first boot, verification, the root token, a policy and a
// token, a key, signing through the tunnel, sealing, recovery. Each step is one line on the console, `ok` or `not ok`;
// the first that fails ends it.

import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { openRootToken } from '../../../../ceremony/root-token-opening.ts';
import { DeleteItemCommand, type DynamoDBClient, GetItemCommand } from '../../../../signer/aws/dynamodb.ts';
import { runWithRoot } from '../../../operator/run-operator.ts';
import { GUEST, TABLES } from '../settings.ts';

export interface Step {
  readonly name: string;
  readonly run: () => Promise<void>;
}

export interface Chapter {
  readonly title: string;
  readonly steps: readonly Step[];
}

export async function perform(chapters: readonly Chapter[]): Promise<boolean> {
  for (const { title, steps } of chapters) {
    process.stdout.write(`chapter: ${title}\n`);
    for (const step of steps) if (!(await passes(step))) return false;
  }
  return true;
}

async function passes({ name, run }: Step): Promise<boolean> {
  const startedAt = performance.now();
  try {
    await run();
    process.stdout.write(`ok - ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)\n`);
    return true;
  } catch (error) {
    process.stdout.write(`not ok - ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    return false;
  }
}

/**
 * Asks again until the answer is as wanted. What cannot come any more, because a process has ended, is for `ask` to
 * throw; otherwise the limit is far beyond what a busy machine needs, and only there so that the step is named that
 * hangs.
 */
export async function until<T>(
  ask: () => Promise<T>,
  wanted: (answer: T) => boolean,
  { attempts = 600, pauseMs = 500 } = {},
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    if (attempt === attempts) throw new Error(`it did not come to pass; the last answer: ${JSON.stringify(answer)}`);
    await pause(pauseMs);
  }
}

export interface OperatorOptions {
  readonly token?: string;
  readonly pcr?: string;
  readonly expect?: number;
}

/** An operator command against the attested endpoint, and its exit code. @returns stdout */
export async function operator(
  args: readonly string[],
  { token, pcr, expect = 0 }: OperatorOptions = {},
): Promise<string> {
  const reference = pcr === undefined ? ['--pcrs', GUEST.measurements] : ['--pcr', pcr, '--any-configuration'];
  const env = token === undefined ? {} : { SVC_OPERATOR_TOKEN: token };
  const { code, stdout, stderr } = await runWithRoot([...args, ...reference], { rootFingerprint: nsmRoot(), env });
  if (code !== expect) throw new Error(`${args.join(' ')}: exit code ${code}, not ${expect}: ${stderr || stdout}`);
  return stdout;
}

export function nsmRoot(): string {
  return readFileSync(GUEST.root, 'utf8').trim();
}

export async function rootToken(dynamodb: DynamoDBClient, identity: string): Promise<string> {
  const { Item } = await dynamodb.send(
    new GetItemCommand({ TableName: TABLES.state, Key: { pk: { S: 'ROOT_TOKEN_BOOTSTRAP' } }, ConsistentRead: true }),
  );
  const opened = await openRootToken(Item?.['value']?.S ?? '', [identity]);
  if (!opened.ok) throw new Error(`the root token does not open: ${opened.refusal}`);
  return opened.token;
}

export async function deleteLatch(dynamodb: DynamoDBClient): Promise<void> {
  await dynamodb.send(new DeleteItemCommand({ TableName: TABLES.state, Key: { pk: { S: 'SEAL_OVERRIDE' } } }));
}

export function demand(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new Error(problem);
}
