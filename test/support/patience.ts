// How long tests wait for what has to come: a condition, and an answer to an AWS client. A test has no opinion on how
// fast a stand-in on a busy machine answers: what answers is waited for.

import type { AwsClientOptions } from '../../signer/aws/client.ts';

/** For a condition, in vi.waitFor and, by vitest.config.ts, expect.poll: so that what never comes is named. */
export const LONGEST_WAIT_MS = 600_000;

/** No answer that comes takes so long. */
export const PATIENT = { connectTimeoutMs: 300_000, requestTimeoutMs: 300_000 } as const satisfies AwsClientOptions;

/**
 * For a service that never answers: the time that the test has to sit out. Whatever it does answer has to come within
 * it, or at the next try.
 */
export const GIVES_UP = { connectTimeoutMs: 300_000, requestTimeoutMs: 3_000 } as const satisfies AwsClientOptions;
