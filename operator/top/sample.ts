// One look at one replica: its probe, its status where the token may see it, and its metrics. Whatever fails is part of
// what is shown: a fleet is watched exactly when something is wrong with it.

import { type ChamberStatus, chamberStatusSchema } from '../../enclave/api/chamber.ts';
import { type Health, healthSchema } from '../../enclave/api/health.ts';
import type { Client } from '../client.ts';
import { CommandFailure } from '../exit.ts';
import { type Rates, ratesBetween, readCounters, type SigningCounters } from './metrics-text.ts';

export interface Replica {
  /** As the operator named it: a profile or a host. */
  readonly name: string;
  readonly client: Client;
  /** Whether there is a token to ask for the status with. */
  readonly hasToken: boolean;
  readonly metrics: Client;
}

export interface Sample {
  readonly name: string;
  readonly health: Health | CommandFailure;
  readonly status: ChamberStatus | undefined;
  readonly counters: SigningCounters | undefined;
  /** Milliseconds, by the monotonic clock. */
  readonly at: number;
  readonly rates: Rates | undefined;
}

/** @param before the last look at the same replica */
export async function sample(replica: Replica, before: Sample | undefined): Promise<Sample> {
  const { name, client, hasToken, metrics } = replica;
  const [health, status, text] = await Promise.all([
    orFailure(client.request({ method: 'GET', path: '/healthcheck', alsoAnswers: 503 }, healthSchema)),
    hasToken
      ? orFailure(client.request({ method: 'GET', path: '/api/v1/chamber/status' }, chamberStatusSchema))
      : undefined,
    orFailure(metrics.text('/metrics')),
  ]);
  const at = performance.now();
  const counters = text instanceof CommandFailure ? undefined : readCounters(text);
  const earlier = before?.counters;
  const rates =
    counters === undefined || earlier === undefined || before === undefined
      ? undefined
      : ratesBetween(earlier, counters, (at - before.at) / 1000);
  return {
    name,
    health: health instanceof CommandFailure ? health : health.value,
    status: status === undefined || status instanceof CommandFailure ? undefined : status.value,
    counters,
    at,
    rates,
  };
}

async function orFailure<Value>(asked: Promise<Value>): Promise<Value | CommandFailure> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    throw error;
  }
}
