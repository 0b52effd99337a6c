// What most tests of the DynamoDB backend stand on: the service, a proxy before it whose faults a test decides, and
// backends that are closed when the test ends.

import { afterAll, afterEach, beforeAll, vi } from 'vitest';
import type { Item } from '../../signer/aws/dynamodb.ts';
import { markPartition } from '../../signer/slashing/dynamodb/tables/items.ts';
import type { SlashableMessage, SlashingBackend } from '../../signer/slashing/types.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { GIVES_UP, LONGEST_WAIT_MS } from './patience.ts';
import { checkOne, publicKeyOf, verdictName } from './slashing.ts';
import { type OpenOptions, type SlashingTables, startSlashingTables } from './slashing-dynamodb.ts';

/** Where the items of the key stand that most tests use. */
export const BLOCK = markPartition({ kind: 'block', publicKey: publicKeyOf(1) });
export const VOTE = markPartition({ kind: 'attestation', publicKey: publicKeyOf(1) });

/** Call it once, at the top of a test file: its members are there from `beforeAll` on. */
export class SlashingTablesBehindProxy {
  tables!: SlashingTables;
  proxy!: FaultProxy;
  /** The table of the backend that was opened last. */
  tableName!: string;
  readonly backends: SlashingBackend[] = [];

  constructor() {
    beforeAll(async () => {
      this.tables = await startSlashingTables();
      this.proxy = await startFaultProxy(this.tables.server.endpoint);
    });
    afterEach(async () => {
      this.proxy.setRule(undefined);
      for (const backend of this.backends.splice(0)) await backend.close();
    });
    afterAll(async () => {
      await this.proxy?.close();
      await this.tables?.close();
    });
  }

  /** A backend behind the proxy, on a table of its own unless one is named. */
  readonly open = async (options: OpenOptions & { readonly table?: string } = {}): Promise<SlashingBackend> => {
    this.tableName = options.table ?? (await this.tables.create());
    const backend = await this.tables.open(this.tableName, { endpoint: this.proxy.endpoint, ...options });
    this.backends.push(backend);
    return backend;
  };

  /**
   * A backend that asks once and gives up what is not answered, for what is never answered. A busy machine may be as
   * late: then it is opened again.
   */
  readonly openImpatient = async (): Promise<SlashingBackend> => {
    const table = await this.tables.create();
    const client = { ...GIVES_UP, maxAttempts: 1 };
    return vi.waitFor(() => this.open({ table, client }), LONGEST_WAIT_MS);
  };

  readonly itemAt = async (pk: string): Promise<Item> => {
    const item = await this.tables.item(this.tableName, pk);
    if (item === undefined) throw new Error(`no item at ${pk}`);
    return item;
  };
}

/** The verdict's name, or the fault. */
export function outcome(backend: SlashingBackend, message: SlashableMessage): Promise<string> {
  return checkOne(backend, message).then(verdictName, (error: { reason?: string }) => `503 ${error.reason}`);
}

/**
 * What it says that is not a fault, of a backend that gives up soon: on a busy machine it is asked again, and may then
 * find its own record.
 */
export async function answered(backend: SlashingBackend, message: SlashableMessage): Promise<string> {
  for (;;) {
    const said = await outcome(backend, message);
    if (!said.startsWith('503')) return said;
  }
}
