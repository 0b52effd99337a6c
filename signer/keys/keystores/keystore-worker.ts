// The thread that decrypts keystores, one at a time: libuv's pool stays free for signing. Passwords and secrets come
// and go as transferred buffers: no other thread has a copy.

import assert from 'node:assert/strict';
import { parentPort } from 'node:worker_threads';
import { errorCode } from '../../../common/formats/error-code.ts';
import { type DecryptedKeystore, decryptKeystore, type Keystore } from './cipher.ts';

export interface KeystoreJob {
  readonly keystore: Keystore;
  readonly password: Uint8Array<ArrayBuffer>;
}

/** `fault` is an error's code or name, without its message. */
export type KeystoreAnswer = DecryptedKeystore | { readonly fault: string };

const port = parentPort;
assert(port !== null, 'keystore-worker.ts runs as a worker thread');

port.on('message', ({ keystore, password }: KeystoreJob) => {
  const answer = decryptOnce(keystore, password);
  port.postMessage(answer, 'secretKey' in answer ? [answer.secretKey.buffer] : []);
});

function decryptOnce(keystore: Keystore, password: Uint8Array): KeystoreAnswer {
  try {
    return decryptKeystore(keystore, password);
  } catch (error) {
    const fault = errorCode(error) ?? 'unknown';
    return { fault };
  } finally {
    password.fill(0);
  }
}
