// The RA-TLS listener of a signer without keys, on Unix sockets, with an emulated NSM: everything that stands before
// the routes is what an enclave runs.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { createNsm } from '../../enclave/nsm/client.ts';
import { listenRatls, type RatlsLimits, type RefusedConnection } from '../../enclave/ratls/listen.ts';
import { RatlsRotation } from '../../enclave/ratls/rotation.ts';
import { createNsmEmulator, type NsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import { parseSafeCidrs } from '../../signer/auth/cidr.ts';
import { createStaticAuthenticator } from '../../signer/auth/static.ts';
import type { TransportServer } from '../../signer/http/listeners/transport-server.ts';
import type { AttestationOutcome, AttestationRoute } from '../../signer/http/routes/attestation.ts';
import type { Transport } from '../../signer/native/transport.ts';
import type { NsmDevice } from '../../signer/tee/nsm.ts';
import { keylessApp } from './auth-app.ts';
import { LONGEST_WAIT_MS } from './patience.ts';
import { RATLS_PORT } from './ratls-client.ts';
import { recordingLog } from './recording-log.ts';
import { type TestClock, testClock } from './stateful-auth.ts';
import { socketPath, unixTransport } from './unix-transport.ts';

/** Good from 203.0.113.0/24 only. Test tokens. */
export const BOUND_TOKEN = 'test-token-bound-to-203.0.113.0';
export const FREE_TOKEN = 'test-token-from-anywhere';

export interface RatlsSigner {
  readonly app: FastifyInstance;
  readonly clock: TestClock;
  readonly emulator: NsmEmulator;
  readonly log: ReturnType<typeof recordingLog>;
  readonly listener: TransportServer;
  readonly rotation: RatlsRotation;
  /** The parent's side. */
  readonly parent: Transport;
  /** The enclave's side, for further listeners. */
  readonly enclave: Transport;
  /** The listener's, for clients that are not ours. */
  readonly socketPath: string;
  readonly refused: readonly RefusedConnection[];
  /** What the rotation waits for, as it was asked for; run the last one to rotate. */
  readonly scheduled: readonly { readonly run: () => void; readonly afterMs: number }[];
  /** How requests for a document ended. */
  readonly attestations: readonly AttestationOutcome[];
  attestationsWaiting(): number;
  /** Calls of the NSM for a document that are not answered. */
  attestationsRunning(): number;
  /** Replaces how the device answers; undefined: as the emulator does. */
  device: NsmDevice | undefined;
  /** Rotate now; resolves when it has come out either way. */
  rotate(): Promise<void>;
  close(): Promise<void>;
}

export interface RatlsSignerOptions {
  readonly maxConnections?: number;
  readonly limits?: Partial<RatlsLimits>;
}

export async function startRatlsSigner(options: RatlsSignerOptions = {}): Promise<RatlsSigner> {
  const folder = mkdtempSync(join(tmpdir(), 'ratls-'));
  const clock = testClock();
  const log = recordingLog();
  const emulator = await createNsmEmulator({ clock });
  const refused: RefusedConnection[] = [];
  const scheduled: { run: () => void; afterMs: number }[] = [];
  const nsm = createNsm((request) => (signer.device ?? emulator.exchange)(request), { timeoutMs: LONGEST_WAIT_MS });
  const rotation = new RatlsRotation(
    { intervalSeconds: 3600, validitySeconds: 86_400 },
    {
      nsm,
      clock,
      log,
      schedule(run, afterMs) {
        scheduled.push({ run, afterMs });
        return () => undefined;
      },
    },
  );
  const attestations: AttestationOutcome[] = [];
  let waiting = (): number => 0;
  let running = 0;
  const attestation: AttestationRoute = {
    nsm: {
      attest: (fields) => {
        running += 1;
        return nsm.attest(fields).finally(() => (running -= 1));
      },
    },
    limits: { maxWaitMs: LONGEST_WAIT_MS },
    onOutcome: (outcome) => attestations.push(outcome),
    onMounted: (count) => (waiting = count),
  };
  const app = await keylessApp({ authenticator: testAuthenticator(), clock, log, attestation });
  const enclave = unixTransport(folder, 'enclave');
  const signer: { device: NsmDevice | undefined } = { device: undefined };
  await rotation.start();
  const listener = await listenRatls(app, {
    transport: enclave,
    port: RATLS_PORT,
    maxConnections: options.maxConnections ?? 512,
    identities: rotation,
    log,
    onRefused: (reason) => refused.push(reason),
    // A test that is about a limit says which.
    limits: { proxyHeaderTimeoutMs: LONGEST_WAIT_MS, handshakeTimeoutMs: LONGEST_WAIT_MS, ...options.limits },
  });
  return Object.assign(signer, {
    app,
    clock,
    emulator,
    log,
    listener,
    rotation,
    parent: unixTransport(folder, 'parent'),
    enclave,
    socketPath: socketPath(folder, 'enclave', RATLS_PORT),
    refused,
    scheduled,
    attestations,
    attestationsWaiting: () => waiting(),
    attestationsRunning: () => running,
    async rotate() {
      const before = scheduled.length;
      scheduled.at(-1)?.run();
      while (scheduled.length === before) await new Promise(setImmediate);
    },
    async close() {
      rotation.stop();
      const closed = new Promise<void>((resolve) => listener.close(resolve));
      listener.closeAllConnections();
      await closed;
      await app.close();
      rmSync(folder, { recursive: true });
    },
  });
}

function testAuthenticator() {
  const boundCidrs = parseSafeCidrs(['203.0.113.0/24']);
  if ('refused' in boundCidrs) throw new Error(boundCidrs.refused);
  return createStaticAuthenticator({
    policies: [{ name: 'list', rules: [{ effect: 'allow', scopes: ['public_keys'] }] }],
    anonymousPolicies: [],
    tokens: [
      { secret: Buffer.from(BOUND_TOKEN), policies: ['list'], boundCidrs },
      { secret: Buffer.from(FREE_TOKEN), policies: ['list'], boundCidrs: [] },
    ],
  });
}
