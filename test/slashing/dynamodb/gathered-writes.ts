// Tables behind a proxy that keeps what arrives, new for every test, and votes of many keys that are written at once.

import { markPartition } from '../../../signer/slashing/dynamodb/tables/items.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import type { Fault, ProxiedRequest } from '../../support/fault-proxy.ts';
import { publicKeyOf, vote } from '../../support/slashing.ts';
import type { OpenOptions } from '../../support/slashing-dynamodb.ts';
import { answered, outcome, SlashingTablesBehindProxy } from '../../support/slashing-dynamodb-world.ts';

export const KEYS = 10;

export const world = new SlashingTablesBehindProxy();
export const { open, openImpatient } = world;
export let requests: ProxiedRequest[] = [];

/** A signer that has signed for so many keys before, source 1 and target 2: it knows their items. */
export async function openWarm(options: OpenOptions & { readonly keys?: number } = {}): Promise<SlashingBackend> {
  return warmed(await open(options), options.keys);
}

export async function warmed(backend: SlashingBackend, keys = KEYS): Promise<SlashingBackend> {
  await Promise.all(votes(2, 'warm', keys).map((message) => answered(backend, message)));
  observe();
  return backend;
}

/** From now on: keeps what arrives. */
export function observe(fault?: (request: ProxiedRequest) => Fault | undefined | Promise<undefined>): void {
  requests = [];
  world.proxy.setRule((request) => {
    requests.push(request);
    return fault?.(request);
  });
}

export function votes(target: number, root: string, keys = KEYS): SlashableMessage[] {
  return Array.from({ length: keys }, (_, key) => vote(key, target - 1, target, root));
}

/** All at once, as requests of different clients. */
export function together(backend: SlashingBackend, messages: readonly SlashableMessage[]): Promise<string[]> {
  return Promise.all(messages.map((message) => outcome(backend, message)));
}

export function all(name: string, keys = KEYS): string[] {
  return Array(keys).fill(name);
}

export function operations(): string[] {
  return requests.map(({ operation }) => operation);
}

/** The partition keys of each shared request. */
export function sharedKeys(): string[][] {
  const shared = requests.filter(({ operation }) => operation === 'BatchExecuteStatement');
  return shared.map(({ body }) => body.match(/(?:ATTESTATION|BLOCK)#0x[0-9a-f]{96}/g) ?? []);
}

export async function storedTarget(key: number): Promise<string | undefined> {
  const pk = markPartition({ kind: 'attestation', publicKey: publicKeyOf(key) });
  return (await world.tables.item(world.tableName, pk))?.['target_epoch']?.N;
}

export const ONE_ATTEMPT: OpenOptions = { client: { maxAttempts: 1 } };
