// A client of a signer in an enclave as the operator's CLI is one: it verifies the peer, and then sends requests over
// that connection.

import http from 'node:http';
import type { DocumentProvider } from '../../common/attestation/contract.ts';
import type { ReferenceValues } from '../../common/attestation/policy.ts';
import { DEFAULT_MAX_AGE_SECONDS } from '../../operator/common-flags.ts';
import { connectAttested } from '../../operator/connect.ts';
import type { NsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import type { NsmPki } from '../../rehearsal/nsm/pki.ts';

export interface AttestedAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export interface AttestedClient {
  call(
    path: string,
    options?: { readonly method?: string; readonly token?: string; readonly body?: unknown },
  ): Promise<AttestedAnswer>;
  close(): Promise<void>;
}

/** The registers that an operator would write down of an image and its configuration, as they are in this NSM now. */
export function registersOf(nsm: NsmEmulator, registers: readonly number[] = [0, 1, 2, 16, 17]): ReferenceValues {
  return new Map(registers.map((index) => [index, [nsm.pcr(index).value.toString('hex')]]));
}

export function testProvider({ rootFingerprint }: Pick<NsmPki, 'rootFingerprint'>): DocumentProvider {
  return { name: 'the NSM of the tests', rootSha256: rootFingerprint };
}

/** @throws AttestationFailure when the peer is not what the registers say; the socket's own error */
export async function attested(
  url: string,
  pki: Pick<NsmPki, 'rootFingerprint'>,
  referenceValues: ReferenceValues,
  now: () => number = Date.now,
): Promise<AttestedClient> {
  const ending = new AbortController();
  const { socket } = await connectAttested(
    {
      url: new URL(url),
      attestation: {
        provider: testProvider(pki),
        referenceValues,
        maxAgeSeconds: DEFAULT_MAX_AGE_SECONDS,
        now,
      },
    },
    ending.signal,
  );
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  return {
    call: (path, { method, token, body } = {}) =>
      new Promise((resolve, reject) => {
        const headers = {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        };
        const request = http.request({ agent, path, method: method ?? (body === undefined ? 'GET' : 'POST'), headers });
        request.on('error', reject).on('response', (response) => {
          void Array.fromAsync(response as AsyncIterable<Buffer>)
            .then((parts) => {
              const text = Buffer.concat(parts).toString('utf8');
              resolve({ status: response.statusCode ?? 0, text, json: text.startsWith('{') ? JSON.parse(text) : {} });
            })
            .catch(reject);
        });
        request.end(body === undefined ? undefined : JSON.stringify(body));
      }),
    async close() {
      ending.abort();
      socket.destroy();
    },
  };
}
