// The parent's AWS credentials, from the SDK's default provider chain. One question at a time. Nothing is logged but
// the kind of a failure.

import { renewedWhenLate } from '../../common/flow/in-time.ts';
import type { PausingClock } from '../clock.ts';
import { CREDENTIALS_FAILURE_LIVES_MS, ROLE_CREDENTIALS_TIMEOUT_MS } from '../limits.ts';

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
    super(`the provider chain gave no credentials within ${ROLE_CREDENTIALS_TIMEOUT_MS} ms`);
    this.name = 'CredentialsTimeoutError';
  }
}

/**
 * Loads the SDK's large chain once it is wanted. By its default: Node.js finds the names of CommonJS, and a bundle does
 * not.
 */
export async function defaultChain(): Promise<CredentialsProvider> {
  const { default: sdk } = await import('@aws-sdk/credential-provider-node');
  return inTime(() => sdk.defaultProvider());
}

function inTime(make: () => CredentialsProvider): CredentialsProvider {
  return renewedWhenLate(make, ROLE_CREDENTIALS_TIMEOUT_MS, () => {
    throw new CredentialsTimeoutError();
  });
}

/** Callers that ask together get one answer; a failure is told again for a moment. */
export function sharedCredentials(provider: CredentialsProvider, clock: PausingClock): CredentialsProvider {
  let current: Promise<Credentials> | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  const ask = inTime(() => provider);
  return () => {
    if (current !== undefined && clock.monotonic() - failedAt < CREDENTIALS_FAILURE_LIVES_MS) return current;
    if (current !== undefined && failedAt === Number.NEGATIVE_INFINITY) return current;
    failedAt = Number.NEGATIVE_INFINITY;
    const asked = ask();
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
