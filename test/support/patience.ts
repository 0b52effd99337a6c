// How long the AWS clients of tests wait for an answer. A test has no opinion on how fast a stand-in on a busy machine
// answers: what answers is waited for.

import type { AwsClientOptions } from '../../enclave/aws/client.ts';

/** No answer that comes takes so long. */
export const PATIENT = { connectTimeoutMs: 300_000, requestTimeoutMs: 300_000 } as const satisfies AwsClientOptions;

/**
 * For a service that never answers: the time that the test has to sit out. Whatever it does answer has to come within
 * it, or at the next try.
 */
export const GIVES_UP = { connectTimeoutMs: 300_000, requestTimeoutMs: 3_000 } as const satisfies AwsClientOptions;
