// A signing worker of the portable BLS core. Reads the keys from the region it shares with its parent and wipes its
// copy after each job. The parent keeps a slot unchanged while a job reads it, so a secret that blst refuses to sign
// with is a bug: the worker ends, its jobs fail.

import assert from 'node:assert/strict';
import { parentPort, workerData } from 'node:worker_threads';
import { SecretKey } from '@chainsafe/blst';
import { SECRET_KEY_BYTES } from '../keys/vault.ts';
import { PUBLIC_KEY_BYTES } from './derivation.ts';
import {
  type BatchMessage,
  type DerivationMessage,
  type DerivedMessage,
  decodeBatch,
  type SignedMessage,
} from './portable-batch.ts';
import { SIGNATURE_BYTES } from './queue.ts';

assert(parentPort !== null && workerData.region instanceof SharedArrayBuffer);
const port = parentPort;
const region = new Uint8Array(workerData.region);
const secretKey = new Uint8Array(SECRET_KEY_BYTES);

/** What `use` makes of the secret in a slot; the copy it is made from is wiped. */
function withSecret<T>(slot: number, use: (secret: Uint8Array) => T): T {
  secretKey.set(region.subarray(slot * SECRET_KEY_BYTES, (slot + 1) * SECRET_KEY_BYTES));
  try {
    return use(secretKey);
  } finally {
    secretKey.fill(0);
  }
}

port.on('message', (message: BatchMessage | DerivationMessage) => {
  if ('slots' in message) derive(message);
  else sign(message);
});

function sign(message: BatchMessage): void {
  const jobs = decodeBatch(message.jobs);
  const signatures = new Uint8Array(jobs.length * SIGNATURE_BYTES);
  for (const [index, { slot, root }] of jobs.entries()) {
    const signature = withSecret(slot, (secret) => SecretKey.fromBytes(secret).sign(root).toBytes());
    signatures.set(signature, index * SIGNATURE_BYTES);
  }
  const signed: SignedMessage = { number: message.number, signatures };
  port.postMessage(signed, [signatures.buffer]);
}

/** These keys are new: here it is found out whether blst takes them. */
function derive({ number, slots }: DerivationMessage): void {
  const publicKeys = new Uint8Array(slots.length * PUBLIC_KEY_BYTES);
  for (const [index, slot] of slots.entries()) {
    const publicKey = withSecret(slot, publicKeyOrNothing);
    if (publicKey !== undefined) publicKeys.set(publicKey, index * PUBLIC_KEY_BYTES);
  }
  const derived: DerivedMessage = { number, publicKeys };
  port.postMessage(derived, [publicKeys.buffer]);
}

function publicKeyOrNothing(secret: Uint8Array): Uint8Array | undefined {
  try {
    return SecretKey.fromBytes(secret).toPublicKey().toBytes();
  } catch {
    return undefined; // zero, or not below the group order
  }
}
