// How many of our own files a vote passes from the socket to its answer: those in which V8 counted a call of some
// function (node:inspector), in any thread, on a connection that was there, over SQLite, with a static token and the
// native core. It may only get less: whoever puts a file on the road takes another off it, or says here why not.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { addonForTests } from '../support/addon.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, signCall } from '../support/requests.ts';

const ROOT = join(import.meta.dirname, '../..');
/**
 * Of these, four are for what was missing: what lies ahead of the clock, doubts, the right to sign, and the way out for
 * lines of the log. Two are the turns of callers, which the HTTP application and each queue had for themselves.
 */
const MAX_FILES = 42;
/** Looks once a second whether memory can be given back, perhaps beside the vote. */
const BESIDE = 'service/freed-memory.ts';
/** The main thread, and the worker of the slashing database. */
const THREADS = 2;

/** Loaded before the signer, in each of its threads: on SIGUSR2 a line of the log with the files that ran since. */
const COUNTER = `data:text/javascript,${encodeURIComponent(`
  import { Session } from 'node:inspector';
  import { isMainThread } from 'node:worker_threads';
  const root = ${JSON.stringify(`${pathToFileURL(ROOT)}/`)};
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const ran = () => {
    const files = [];
    session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      for (const { url, functions } of result) {
        if (!url.startsWith(root) || url.includes('/node_modules/')) continue;
        if (functions.some(({ ranges: [{ startOffset, count }] }) => startOffset > 0 && count > 0)) files.push(url.slice(root.length));
      }
    });
    return files;
  };
  const threads = new BroadcastChannel('files of a vote');
  threads.unref();
  const tell = (files) => process.stdout.write(JSON.stringify({ msg: 'files that ran', files }) + '\\n');
  if (isMainThread) {
    threads.onmessage = ({ data }) => data.files && tell(data.files);
    process.on('SIGUSR2', () => {
      threads.postMessage({});
      tell(ran());
    });
  } else threads.onmessage = ({ data }) => data.files ?? threads.postMessage({ files: ran() });
`)}`;

it.skipIf(!addonForTests())('a vote passes so many of our own files at most', async () => {
  const never = 86_400; // nothing else runs beside the vote
  const deployment = deploy(1, {
    server: { health_check: { poll_interval_seconds: never } },
    metrics: { refresh_interval_seconds: never },
  });
  const signer = await deployment.start({ env: { NODE_OPTIONS: `--import ${COUNTER}` } });
  const lines = (): readonly (readonly string[])[] =>
    signer.log.filter(({ msg }) => msg === 'files that ran').map(({ files }) => files as string[]);
  const ranSince = async (): Promise<readonly string[]> => {
    const before = lines().length;
    process.kill(signer.pid, 'SIGUSR2');
    await expect.poll(() => lines().length).toBe(before + THREADS);
    return [...new Set(lines().slice(before).flat())].filter((file) => file !== BESIDE).sort();
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
  const files = await ranSince();
  expect(files).toEqual(
    expect.arrayContaining([
      'signer/http/admission.ts',
      'signer/auth/evaluate.ts',
      'signer/http/routes/sign.ts',
      'signer/signing/sign.ts',
      'signer/slashing/protection.ts',
      'signer/slashing/sqlite/check.ts',
      'signer/signing/bls/native.ts',
    ]),
  );
  expect(files.length > MAX_FILES ? files : []).toEqual([]);
  await signer.stop();
});
