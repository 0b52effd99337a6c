// A signer as a process of its own, as far as slashing protection goes: opens the backend that its argument names, puts
// SlashingProtection in front of it, and answers each message over IPC with `safe` or with the reason why not. It ends
// with its parent, or when it is killed, which is what it is for. Run by slashing-signers.ts.

import { SignerError } from '../../enclave/api/errors.ts';
import { SlashingProtection } from '../../enclave/slashing/protection.ts';
import { openSqliteBackend } from '../../enclave/slashing/sqlite/backend.ts';
import type { SlashableMessage, SlashingBackend } from '../../enclave/slashing/types.ts';
import { systemClock } from '../../observe/clock.ts';
import { MAIN_ROOT, quietLog } from './slashing.ts';
import { openSlashingTable } from './slashing-dynamodb.ts';
import { openTestBackend } from './slashing-postgres.ts';

export type SignerStore =
  | { readonly backend: 'sqlite'; readonly path: string }
  | { readonly backend: 'postgres'; readonly url: string }
  | { readonly backend: 'dynamodb'; readonly endpoint: string; readonly tableName: string };

export interface SignerRequest {
  readonly id: number;
  readonly message: SlashableMessage;
}

export interface SignerAnswer {
  readonly id: number;
  /** `safe`: the signature is out. Else the reason of the refusal or failure. */
  readonly outcome: string;
}

function openBackend(store: SignerStore): Promise<SlashingBackend> {
  switch (store.backend) {
    case 'sqlite':
      return openSqliteBackend({ path: store.path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
    case 'postgres':
      return openTestBackend(store.url, { poolSize: 8 });
    case 'dynamodb':
      return openSlashingTable(store.endpoint, store.tableName, { maxConcurrentWrites: 32 });
  }
}

if (import.meta.main) {
  process.once('disconnect', () => process.exit());
  const backend = await openBackend(JSON.parse(process.argv[2] ?? '{}'));
  const protection = new SlashingProtection(backend, {}, { clock: systemClock, log: quietLog });
  process.on('message', async ({ id, message }: SignerRequest) => {
    const outcome = await protection.check(message).then(
      (checked) => (checked.kind === 'safe' ? 'safe' : checked.reason),
      (error: unknown) => (error instanceof SignerError ? error.reason : String(error)),
    );
    process.send?.({ id, outcome } satisfies SignerAnswer);
  });
  process.send?.('ready');
}
