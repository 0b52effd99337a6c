// How many of our own functions a vote calls from the socket to its answer, as V8 counts them (node:inspector), in any
// thread, on a connection that was there, over SQLite, with a static token and the native core, and in how many files
// they stand. It may only get less: who puts a function on the road takes another off it, or says here why not.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { addonForTests } from '../support/addon.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, signCall } from '../support/requests.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The road itself: how the functions are spread over files does not change it. */
const MAX_FUNCTIONS = 343;
/** Each has one subject. Thirteen were second heads in other files until a second subject became a file. */
const MAX_FILES = 55;
/** Looks once a second whether memory can be given back, perhaps beside the vote. */
const BESIDE = 'service/freed-memory.ts';
/** The main thread, and the worker of the slashing database. */
const THREADS = 2;

/** Loaded before the signer, in each of its threads: on SIGUSR2 a line of the log with the functions that ran since. */
const COUNTER = `data:text/javascript,${encodeURIComponent(`
  import { Session } from 'node:inspector';
  import { isMainThread } from 'node:worker_threads';
  const root = ${JSON.stringify(`${pathToFileURL(ROOT)}/`)};
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const ran = () => {
    const called = [];
    session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      for (const { url, functions } of result) {
        if (!url.startsWith(root) || url.includes('/node_modules/')) continue;
        for (const { functionName, ranges: [{ startOffset, count }] } of functions)
          if (startOffset > 0 && count > 0) called.push(url.slice(root.length) + ' ' + startOffset + ' ' + functionName);
      }
    });
    return called;
  };
  const threads = new BroadcastChannel('functions of a vote');
  threads.unref();
  const tell = (called) => process.stdout.write(JSON.stringify({ msg: 'functions that ran', called }) + '\\n');
  if (isMainThread) {
    threads.onmessage = ({ data }) => data.called && tell(data.called);
    process.on('SIGUSR2', () => {
      threads.postMessage({});
      tell(ran());
    });
  } else threads.onmessage = ({ data }) => data.called ?? threads.postMessage({ called: ran() });
`)}`;

it.skipIf(!addonForTests())('a vote calls so many of our own functions, in so many files, at most', async () => {
  const never = 86_400; // nothing else runs beside the vote
  const deployment = deploy(1, {
    server: { health_check: { poll_interval_seconds: never } },
    metrics: { refresh_interval_seconds: never },
  });
  const signer = await deployment.start({ env: { NODE_OPTIONS: `--import ${COUNTER}` } });
  const lines = (): readonly (readonly string[])[] =>
    signer.log.filter(({ msg }) => msg === 'functions that ran').map(({ called }) => called as string[]);
  const ranSince = async (): Promise<readonly string[]> => {
    const before = lines().length;
    process.kill(signer.pid, 'SIGUSR2');
    await expect.poll(() => lines().length).toBe(before + THREADS);
    return [...new Set(lines().slice(before).flat())].filter((one) => fileOf(one) !== BESIDE).sort();
  };
  const vote = async (target: number): Promise<void> => {
    const answer = await signCall(
      signer.url,
      deployment.keys[0]?.publicKey ?? '',
      attestation({ source: target - 1, target }),
    );
    expect(answer.status).toBe(200);
    await signer.logged('request', { target_epoch: target });
  };

  for (const target of [12, 13, 14]) await vote(target); // what happens once only is over
  await ranSince();
  await vote(15);
  const functions = await ranSince();
  const files = [...new Set(functions.map(fileOf))];
  expect(files).toEqual(
    expect.arrayContaining([
      'signer/http/admission.ts',
      'signer/auth/evaluate.ts',
      'signer/http/routes/sign.ts',
      'signer/sign/sign.ts',
      'signer/slashing/protection.ts',
      'signer/slashing/sqlite/check.ts',
      'signer/bls/native.ts',
    ]),
  );
  expect(files.length > MAX_FILES ? files : []).toEqual([]);
  expect(functions.length > MAX_FUNCTIONS ? functions : []).toEqual([]);
  await signer.stop();
});

function fileOf(called: string): string {
  return called.split(' ', 1)[0] ?? '';
}
