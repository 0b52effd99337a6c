// Votes and blocks as a validator client asks for them.

import { attestation } from '../../../support/messages.ts';
import { presentBlock } from '../../../support/present.ts';

export interface VoteAnswer {
  readonly status: number;
  readonly text: string;
}

/** @param head the vote's beacon block root, for another vote of the same target */
export function voteRequest(target: number, head?: string): object {
  return attestation({ source: target - 1, target, ...(head === undefined ? {} : { head }) });
}

export function vote(url: string, publicKey: string, target: number, head?: string): Promise<VoteAnswer> {
  return ask(url, publicKey, voteRequest(target, head));
}

export function propose(url: string, publicKey: string): Promise<VoteAnswer> {
  return ask(url, publicKey, presentBlock());
}

async function ask(url: string, publicKey: string, body: object): Promise<VoteAnswer> {
  const response = await fetch(`${url}/api/v1/eth2/sign/${publicKey}`, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  return { status: response.status, text: await response.text() };
}
