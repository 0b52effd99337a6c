// Requests of batches to a signer of its own, and what their answers say of each key.

import { expect } from 'vitest';
import { type Answer, testKey } from '../support/requests.ts';

export const MANY = 2048;
export const keys = Array.from({ length: MANY }, (_, index) => testKey(index));
export const names = keys.map(({ publicKey }) => publicKey);
export const nameAt = (place: number): string => names[place] ?? '';
export const JSON_ANSWER = { headers: { accept: 'application/json' } };

export interface Result {
  readonly identifier: string;
  readonly signature?: string;
  readonly error?: { readonly code: number; readonly reason: string; readonly message: string };
}

export function resultsOf(answer: Answer): readonly Result[] {
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, '']);
  return JSON.parse(answer.text) as Result[];
}

export function outcomesOf(answer: Answer): readonly string[] {
  return resultsOf(answer).map(({ signature, error }) =>
    signature === undefined ? `${error?.code} ${error?.reason}` : 'signed',
  );
}
