// A signing worker of the portable BLS core. Reads the keys from the region it shares with its parent and wipes its
// copy after each job. The parent keeps a slot unchanged while a job reads it, so a secret that blst refuses is a bug:
// the worker ends, its jobs fail.

import assert from 'node:assert/strict';
import { parentPort, workerData } from 'node:worker_threads';
import { SecretKey } from '@chainsafe/blst';
import { type BatchMessage, decodeBatch, type SignedMessage } from './portable-batch.ts';
import { SECRET_KEY_BYTES } from './portable-keys.ts';
import { SIGNATURE_BYTES } from './queue.ts';

assert(parentPort !== null && workerData.region instanceof SharedArrayBuffer);
const port = parentPort;
const region = new Uint8Array(workerData.region);
const secretKey = new Uint8Array(SECRET_KEY_BYTES);

port.on('message', (message: BatchMessage) => {
  const jobs = decodeBatch(message.jobs);
  const signatures = new Uint8Array(jobs.length * SIGNATURE_BYTES);
  for (const [index, { slot, root }] of jobs.entries()) {
    secretKey.set(region.subarray(slot * SECRET_KEY_BYTES, (slot + 1) * SECRET_KEY_BYTES));
    signatures.set(SecretKey.fromBytes(secretKey).sign(root).toBytes(), index * SIGNATURE_BYTES);
    secretKey.fill(0);
  }
  const signed: SignedMessage = { number: message.number, signatures };
  port.postMessage(signed, [signatures.buffer]);
});
