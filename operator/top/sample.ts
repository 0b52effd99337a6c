// One look at one replica: its probe, its status where the token may see it, and its metrics. Whatever fails is part of
// what is shown: a fleet is watched exactly when something is wrong with it.

import { type ChamberStatus, chamberStatusSchema } from '../../signer/api/chamber.ts';
import { type Health, healthSchema } from '../../signer/api/health.ts';
import { type Client, HEALTH, STATUS } from '../client.ts';
import { CommandFailure, orFailure } from '../exit.ts';
import { type Rates, ratesBetween, readCounters, type SigningCounters } from './counters.ts';

export interface Replica {
  readonly name: string;
  readonly client: Client;
  readonly hasToken: boolean;
  readonly metrics: Client;
}

export interface ReplicaSample {
  readonly name: string;
  readonly health: Health | CommandFailure;
  readonly status: ChamberStatus | undefined;
  readonly counters: SigningCounters | undefined;
  readonly at: number;
  readonly rates: Rates | undefined;
}

export async function sample(replica: Replica, before: ReplicaSample | undefined): Promise<ReplicaSample> {
  const { name, client, hasToken, metrics } = replica;
  const [health, status, text] = await Promise.all([
    orFailure(client.request(HEALTH, healthSchema)),
    hasToken ? orFailure(client.request(STATUS, chamberStatusSchema)) : undefined,
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
