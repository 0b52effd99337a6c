// Large bodies in the worker: what comes back is what the main thread's parser says and hashes, other bodies come back
// as they were, and what is given up makes room.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { parseSignRequest } from '../../../signer/operations/parse.ts';
import { envelopeReader, MAX_WAITING_BODIES } from '../../../signer/sign/envelopes/envelope-reader.ts';
import type { EnvelopeAnswer } from '../../../signer/sign/envelopes/envelope-worker.ts';
import { computeSigningRoot } from '../../../signer/sign/message-root.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { envelope, messageAt } from '../../support/fork-messages.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { recordingLog } from '../../support/recording-log.ts';

const SEPOLIA = publicNetwork('sepolia');
const SLOT = 353_030 * 32;
const FORKS = { previous: 'fulu', current: 'gloas', epoch: 353_024 } as const;
const NEVER = new AbortController().signal;

/** Gives each body back, then makes the file that the body names. */
const ECHOING_WORKER = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { writeFileSync } from 'node:fs';
    import { parentPort } from 'node:worker_threads';
    parentPort.on('message', ({ body }) => {
      parentPort.postMessage({ kind: 'other', body });
      writeFileSync(Buffer.from(body).toString(), '');
    });
  `)}`,
);

/** Answers each body with the number of its thread; never the body `hangs`. */
const NUMBERED_WORKER = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, threadId } from 'node:worker_threads';
    parentPort.on('message', ({ body }) => {
      if (Buffer.from(body).toString() === 'hangs') return;
      parentPort.postMessage({ kind: 'other', body: new Uint8Array(Buffer.from(String(threadId))) });
    });
  `)}`,
);

const timeoutSeconds = LONGEST_WAIT_MS / 1000;
const log = recordingLog();
let reader = envelopeReader({ log, timeoutSeconds });
afterEach(async () => {
  await reader.close();
  reader = envelopeReader({ log, timeoutSeconds });
});

function body(changed: object = {}): Buffer {
  const transactions = Array.from({ length: 40 }, (_, index) => `0x${'ab'.repeat(index * 100)}`);
  const message = messageAt(SEPOLIA, 'EXECUTION_PAYLOAD_ENVELOPE', SLOT, { ...FORKS, stated: 'gloas' });
  const data = envelope(SLOT, transactions);
  return Buffer.from(
    JSON.stringify({ ...message, execution_payload_envelope: { version: 'gloas', data }, ...changed }),
  );
}

describe('a large body', () => {
  it('of an envelope comes back as a request with its root', async () => {
    const read = await reader.read(body(), NEVER);
    const parsed = parseSignRequest(body());
    if (read.kind !== 'request' || parsed.kind !== 'request') throw new Error(`${read.kind}, ${parsed.kind}`);
    expect(read.request).toMatchObject({
      operation: 'EXECUTION_PAYLOAD_ENVELOPE',
      message: { version: 'gloas', slot: SLOT },
    });
    expect(read.request.message).toMatchObject({ content: { kind: 'root' } });
    expect(Buffer.from(computeSigningRoot(read.request, SEPOLIA))).toEqual(
      Buffer.from(computeSigningRoot(parsed.request, SEPOLIA)),
    );
  });

  it('of an envelope that is malformed is refused as on the main thread', async () => {
    const bad = body({ fork_info: {} });
    expect(await reader.read(Buffer.from(bad), NEVER)).toEqual(parseSignRequest(bad));
    const two = Buffer.from(body().toString().replace('"slot_number"', '"gas_used"'));
    expect(parseSignRequest(two)).toMatchObject({ hint: 'the member "gas_used" is given twice' });
    expect(await reader.read(two, NEVER)).toMatchObject({ kind: 'other' });
  });

  it.each(['ATTESTATION', 'INCLUSION_LIST', 7, undefined])('of the type %s comes back as it was', async (type) => {
    const bytes = body({ type });
    const read = await reader.read(Buffer.from(bytes), NEVER);
    expect(read.kind === 'other' && Buffer.from(read.body)).toEqual(bytes);
  });

  it.each(['', '{', 'null', '[]', '"EXECUTION_PAYLOAD_ENVELOPE"'])(
    'that is no request comes back: %s',
    async (text) => {
      expect(await reader.read(Buffer.from(text), NEVER)).toMatchObject({ kind: 'other' });
    },
  );

  it('may have more values than a body of the main thread, up to a limit', async () => {
    const withWithdrawals = (count: number): Buffer => {
      const data = envelope(SLOT);
      const one = { source_address: `0x${'01'.repeat(20)}`, validator_pubkey: `0x${'02'.repeat(48)}`, amount: '1' };
      const requests = {
        ...(data['execution_requests'] as object),
        withdrawals: Array.from({ length: count }, () => one),
      };
      return body({ execution_payload_envelope: { ...data, execution_requests: requests } });
    };
    expect(parseSignRequest(withWithdrawals(6000))).toMatchObject({ hint: 'the body has more than 20000 values' });
    expect(await reader.read(withWithdrawals(6000), NEVER)).toMatchObject({ kind: 'request' });
    expect(await reader.read(withWithdrawals(60_000), NEVER)).toMatchObject({ kind: 'other' });
  });
});

describe('reading', () => {
  it('is given up for whoever went away, at work or not, and goes on for the others', async () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const gone = [reader.read(body(), first.signal), reader.read(body(), second.signal)];
    const stays = reader.read(body(), NEVER);
    second.abort(new Error('went away'));
    first.abort(new Error('went away'));
    for (const read of gone) await expect(read).rejects.toThrow('went away');
    expect(await stays).toMatchObject({ kind: 'request' });
    await expect(reader.read(body(), first.signal)).rejects.toThrow('went away');
  });

  it('never answers a body with the answer to one that was given up, even when that was already on its way', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strongroom-envelopes-'));
    const echoing = envelopeReader({ log, timeoutSeconds, workerUrl: ECHOING_WORKER });
    try {
      const one = new AbortController();
      await echoing.read(Buffer.from(join(folder, 'first')), NEVER); // the worker runs
      const given = echoing.read(Buffer.from(join(folder, 'given up')), one.signal);
      while (!existsSync(join(folder, 'given up'))); // no turn of the event loop: the answer lies in the port
      one.abort(new Error('went away'));
      const other = echoing.read(Buffer.from(join(folder, 'other')), NEVER);
      await expect(given).rejects.toThrow('went away');
      const answer = await other;
      expect(answer.kind === 'other' && Buffer.from(answer.body).toString()).toBe(join(folder, 'other'));
    } finally {
      await echoing.close();
      rmSync(folder, { recursive: true });
    }
  });

  it('fails for each body alone when no worker can be started, and never keeps the next one waiting', async () => {
    const workerUrl = new URL('http://127.0.0.1/no-worker.js');
    const failing = envelopeReader({ log, timeoutSeconds, workerUrl });
    for (let bodies = 0; bodies < 2; bodies++) {
      const read = failing.read(body(), AbortSignal.timeout(LONGEST_WAIT_MS));
      await expect(read).rejects.toMatchObject({ reason: 'internal_error', cause: { code: 'ERR_INVALID_URL_SCHEME' } });
    }
    await failing.close();
  });

  const threadOf = async (read: Promise<EnvelopeAnswer>): Promise<string> => {
    const answer = await read;
    return answer.kind === 'other' ? Buffer.from(answer.body).toString() : answer.kind;
  };

  it('costs no thread when clients go away: a body that is being read is read to its end', async () => {
    const numbered = envelopeReader({ log, timeoutSeconds, workerUrl: NUMBERED_WORKER });
    try {
      const thread = await threadOf(numbered.read(Buffer.from('first'), NEVER));
      for (let clients = 0; clients < 3; clients++) {
        const client = new AbortController();
        const gone = numbered.read(Buffer.from('gone'), client.signal);
        client.abort(new Error('went away'));
        await expect(gone).rejects.toThrow('went away');
        expect(await threadOf(numbered.read(Buffer.from('next'), NEVER))).toBe(thread);
      }
    } finally {
      await numbered.close();
    }
  });

  it('of a body that takes longer than a request may ends with its thread, and the next one gets another', async () => {
    const numbered = envelopeReader({ log, timeoutSeconds: 0.2, workerUrl: NUMBERED_WORKER });
    try {
      const client = new AbortController();
      const gone = numbered.read(Buffer.from('hangs'), client.signal);
      client.abort(new Error('went away'));
      await expect(gone).rejects.toThrow('went away'); // whose own time counts no more
      await expect(numbered.read(Buffer.from('hangs'), NEVER)).rejects.toMatchObject({ reason: 'request_timeout' });
    } finally {
      await numbered.close();
    }
    const patient = envelopeReader({ log, timeoutSeconds, workerUrl: NUMBERED_WORKER });
    const ended = Promise.allSettled([patient.read(Buffer.from('hangs'), NEVER)]);
    await patient.close();
    expect(await ended).toMatchObject([{ reason: { reason: 'shutting_down' } }]);
  });

  it('takes turns: a caller waits for two bodies of another, and has a place in a full line', async () => {
    const ended: string[] = [];
    const ask = (caller: string) =>
      reader.read(body(), NEVER, caller).then(
        () => ended.push(caller),
        (error: { reason?: string }) => ended.push(`${caller}: ${error.reason}`),
      );
    const flood = Array.from({ length: MAX_WAITING_BODIES + 1 }, () => ask('flood'));
    const other = ask('other');
    await Promise.all([...flood, other]);
    expect(ended.slice(0, 4)).toEqual(['flood: overloaded', 'flood', 'flood', 'other']);
    expect(ended.filter((one) => one === 'flood')).toHaveLength(MAX_WAITING_BODIES);
  });

  it('is refused when too many wait', async () => {
    const reads = Array.from({ length: MAX_WAITING_BODIES + 1 }, () => reader.read(body(), NEVER));
    await expect(reader.read(body(), NEVER)).rejects.toMatchObject({ reason: 'overloaded' });
    expect(new Set((await Promise.all(reads)).map(({ kind }) => kind))).toEqual(new Set(['request']));
  });

  it('ends with the signer', async () => {
    const reads = [reader.read(body(), NEVER), reader.read(body(), NEVER)];
    const ended = Promise.allSettled(reads);
    await reader.close();
    for (const outcome of await ended) expect(outcome).toMatchObject({ reason: { reason: 'shutting_down' } });
  });
});
