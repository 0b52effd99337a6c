// The parent's AWS credentials, from the SDK's default provider chain. One question at a time. Nothing is logged but
// the kind of a failure.

import { setTimeout as sleep } from 'node:timers/promises';
import type { PausingClock } from '../clock.ts';
import { CREDENTIALS_FAILURE_LIVES_MS, CREDENTIALS_TIMEOUT_MS } from '../limits.ts';

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

export type CredentialsProvider = () => Promise<Credentials>;

class CredentialsTimeoutError extends Error {
  readonly code = 'ETIMEDOUT';

  constructor() {
    super(`the provider chain gave no credentials within ${CREDENTIALS_TIMEOUT_MS} ms`);
    this.name = 'CredentialsTimeoutError';
  }
}

/**
 * Loads the SDK's large chain once it is wanted. By its default: Node.js finds the names of CommonJS, and a bundle does
 * not.
 */
export async function defaultChain(): Promise<CredentialsProvider> {
  const { default: sdk } = await import('@aws-sdk/credential-provider-node');
  return sdk.defaultProvider();
}

/** Callers that ask together get one answer; a failure is told again for a moment. */
export function sharedCredentials(provider: CredentialsProvider, clock: PausingClock): CredentialsProvider {
  let current: Promise<Credentials> | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (current !== undefined && clock.monotonic() - failedAt < CREDENTIALS_FAILURE_LIVES_MS) return current;
    if (current !== undefined && failedAt === Number.NEGATIVE_INFINITY) return current;
    failedAt = Number.NEGATIVE_INFINITY;
    const asked = withinTime(provider);
    current = asked;
    asked.then(
      () => {
        current = undefined;
      },
      () => {
        failedAt = clock.monotonic();
      },
    );
    return asked;
  };
}

async function withinTime(provider: CredentialsProvider): Promise<Credentials> {
  const answered = new AbortController();
  const late = sleep(CREDENTIALS_TIMEOUT_MS, undefined, { signal: answered.signal }).then(() => {
    throw new CredentialsTimeoutError();
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([provider(), late]);
  } finally {
    answered.abort();
  }
}
