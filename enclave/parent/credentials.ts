// AWS credentials of an enclave, from the parent (specification/enclave.md#ports). Key policies ask for more than them:
// its attestation. Answers are never logged.

import http from 'node:http';
import { z } from 'zod';
import { errorCode } from '../../common/formats/error-code.ts';
import { parseJson } from '../../common/formats/parse-json.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { CREDENTIALS_PATH, CREDENTIALS_PORT, MAX_CREDENTIALS_BYTES } from '../../signer/api/parent-ports.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { keepTrying, type Patience } from '../platform.ts';

interface ExpiringCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly expiration: Date;
}

export type CredentialProvider = () => Promise<ExpiringCredentials>;

/** The SDK asks before every call from five minutes before the end on. */
const RENEW_BEFORE_MS = 10 * 60_000;
const LAST_MS = 30_000;
const PACE_MS = 1_000;
/** The parent may still look for its own. */
const FIRST_CREDENTIALS_PATIENCE: Patience = { patienceMs: 60_000, firstPauseMs: 200, maxPauseMs: 5_000 };
const ANSWER_WITHIN_MS = 3_000;
const MAX_HEADER_BYTES = 8 * 1024;

const answerSchema = z.object({
  AccessKeyId: z.string().min(1),
  SecretAccessKey: z.string().min(1),
  Token: z.string().min(1),
  Expiration: z.iso.datetime({ offset: true }),
});

class UnusableCredentials extends Error {
  constructor(problem: string) {
    super(`the parent's answer for AWS credentials is refused: ${problem}`);
    this.name = 'CredentialsProviderError'; // signer/aws/errors.ts: denied
  }
}

export function parentCredentials(
  parent: Transport,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): CredentialProvider {
  let held: ExpiringCredentials | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<ExpiringCredentials> | undefined;

  const livesMs = (): number => (held === undefined ? 0 : held.expiration.getTime() - clock.now());
  const ask = (): Promise<ExpiringCredentials> => {
    if (asking !== undefined) return asking;
    askedAt = clock.monotonic();
    asking = askParent(parent, clock)
      .then((credentials) => {
        held = credentials;
        return credentials;
      })
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
  /** In the background: no call waits for a slow parent while there are good ones. */
  const renew = (): void => {
    ask().catch((error: unknown) => {
      const fields = { error: nameOf(error), expire_in_seconds: Math.round(livesMs() / 1000) };
      log.warn(fields, 'AWS credentials not renewed');
    });
  };
  return async () => {
    if (held === undefined || livesMs() <= LAST_MS) return await ask();
    if (asking === undefined && livesMs() <= RENEW_BEFORE_MS && clock.monotonic() - askedAt >= PACE_MS) renew();
    return held;
  };
}

export async function firstCredentials(
  provider: CredentialProvider,
  { log, patience = FIRST_CREDENTIALS_PATIENCE }: { readonly log: Log; readonly patience?: Patience | undefined },
): Promise<void> {
  try {
    await keepTrying(provider, patience, {
      onFailure: (error, attempt) => log.warn({ attempt, problem: nameOf(error) }, 'no AWS credentials yet'),
    });
  } catch (error) {
    throw new Error(
      `the parent gives no AWS credentials on vsock port ${CREDENTIALS_PORT}: ${nameOf(error)}; give the instance a role, and the parent proxy access to it`,
      { cause: error },
    );
  }
}

async function askParent(parent: Transport, clock: Clock): Promise<ExpiringCredentials> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const socket = await parent.connect(CREDENTIALS_PORT, { timeoutMs: ANSWER_WITHIN_MS, signal });
  try {
    return credentialsIn(await get(socket, signal), clock);
  } finally {
    socket.destroy();
  }
}

async function get(socket: Awaited<ReturnType<Transport['connect']>>, signal: AbortSignal): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const request = http.request(
    {
      createConnection: () => socket,
      path: CREDENTIALS_PATH,
      headers: { host: 'parent', connection: 'close' },
      maxHeaderSize: MAX_HEADER_BYTES,
      signal,
    },
    resolve,
  );
  request.on('error', reject);
  // Also for an unrequested answer 101, after which Node ends a request with no other event.
  request.once('close', () => reject(new UnusableCredentials('there is none')));
  request.end();
  const response = await promise;
  if (response.statusCode !== 200) throw new UnusableCredentials(`status ${response.statusCode}`);
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > MAX_CREDENTIALS_BYTES) throw new UnusableCredentials(`over ${MAX_CREDENTIALS_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** No message repeats the answer: it holds a secret. */
function credentialsIn(body: Buffer, clock: Clock): ExpiringCredentials {
  const { data } = answerSchema.safeParse(parseJson(body.toString('utf8')));
  if (data === undefined) throw new UnusableCredentials('not the JSON of container credentials');
  const expiration = new Date(data.Expiration);
  if (expiration.getTime() - clock.now() <= LAST_MS) throw new UnusableCredentials('they have expired');
  return {
    accessKeyId: data.AccessKeyId,
    secretAccessKey: data.SecretAccessKey,
    sessionToken: data.Token,
    expiration,
  };
}

function nameOf(error: unknown): string {
  if (error instanceof UnusableCredentials) return error.message;
  return errorCode(error) ?? String(error);
}
