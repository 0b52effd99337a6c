// Replicas that boot on one custody world, and rows that somebody else writes. Whoever imports it has the world for all
// tests of the file.

import { afterAll, beforeAll } from 'vitest';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import type { KeyBehaviour } from '../../rehearsal/kms/server.ts';
import { bootReplica, type Replica } from './replicas.ts';

export const REPLICAS = 8;

export let world: CustodyWorld;

beforeAll(async () => {
  world = await startCustody();
});

afterAll(() => world.close());

export interface RecordJson {
  deployment: { network: string; id: string };
  generation: number;
  threshold: number;
  shares: { index: number; arns: string[]; ciphertext: string }[];
  binding: string;
}

export function bootMany(count: number, options: { table: string; ceremony: unknown }): Promise<Replica[]> {
  return Promise.all(Array.from({ length: count }, () => bootReplica(world, options)));
}

export function setBehaviour(ceremony: CeremonyBlock, key: number, behaviour: KeyBehaviour): void {
  for (const arn of ceremony.kms_keys[key]?.arns ?? []) world.kms.setBehaviour(arn, behaviour);
}

export function allRows(table: string): Promise<unknown[]> {
  return Promise.all(['MASTER_KEY', 'ROOT_TOKEN_BOOTSTRAP', 'AUTH_REVISION'].map((pk) => world.row(table, pk)));
}

export async function alterRecord(table: string, alter: (record: RecordJson) => void): Promise<void> {
  const item = await world.row(table, 'MASTER_KEY');
  const record = JSON.parse(item?.['record']?.S ?? '') as RecordJson;
  alter(record);
  await world.putRow(table, { ...item, record: { S: JSON.stringify(record) } });
}
