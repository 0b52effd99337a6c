// The thread that hashes full bundles of the log of receipts, one after the other. Nothing here is secret.

import assert from 'node:assert/strict';
import { parentPort } from 'node:worker_threads';
import { rootOfBundle } from './bundle-hash.ts';

const port = parentPort;
assert(port !== null, 'bundle-worker.ts runs as a worker thread');

port.on('message', (bundle: Uint8Array) => port.postMessage(rootOfBundle(bundle)));
