// What is asked of a participant: partial signatures of one message, for one key or for several in a batch. It gets the
// bytes of the client, where the client asked for the same keys.

import type { OutgoingHttpHeaders } from 'node:http';
import { reasonOf } from '../tunnel/listener.ts';
import type { Duty } from './duty.ts';
import { readAnswer, type Said } from './partials.ts';
import type { Participant } from './participants.ts';

interface Question {
  readonly headers: OutgoingHttpHeaders;
  /** As a client sent it: for one key, or a batch. */
  readonly body: Buffer;
  /** What a client's batch says of its keys; undefined when the body is for one key. */
  readonly batch: { readonly size: number; readonly signing_request: unknown } | undefined;
}

const SIGN_PATH = '/api/v1/eth2/distributed/sign';
const MAX_PARTIAL_BYTES = 64 * 1024;
const MAX_RESULT_BYTES = 1024;

/** @returns what it said of each duty, in order @throws when no whole answer comes until the signal */
export async function askParticipant(
  participant: Participant,
  question: Question,
  duties: readonly Duty[],
  signal: AbortSignal,
): Promise<readonly Said[]> {
  const { headers, batch } = question;
  const keys = duties.map(({ group }) => group.compositeKey);
  const isBatch = batch !== undefined;
  const path = isBatch ? SIGN_PATH : `${SIGN_PATH}/${keys[0]}`;
  const sent = { headers, body: bodyFor(keys, question) };
  const maxBytes = MAX_PARTIAL_BYTES + MAX_RESULT_BYTES * keys.length;
  try {
    const answer = await participant.ask(path, sent, maxBytes, signal);
    const said = readAnswer(answer, keys, isBatch);
    const isOfUse = said.some((one) => one !== undefined);
    participant.noteSigning(isOfUse ? undefined : `status ${answer.status}`);
    return said;
  } catch (error) {
    if (!isGone(signal)) participant.noteSigning(reasonOf(error));
    throw error;
  }
}

/** The client went away, or the tunnel ends: not for want of time. */
export function isGone({ aborted, reason }: AbortSignal): boolean {
  return aborted && (reason as Error).name !== 'TimeoutError';
}

function bodyFor(keys: readonly string[], { body, batch }: Question): Buffer {
  if (batch === undefined || batch.size === keys.length) return body;
  return Buffer.from(JSON.stringify({ identifiers: keys, signing_request: batch.signing_request }));
}
