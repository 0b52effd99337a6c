// A signer as a process of its own, as far as slashing protection goes: opens the backend that its argument names, puts
// SlashingProtection in front of it, and answers each message over IPC with `safe` or with the reason why not. It ends
// with its parent, or when it is killed, which is what it is for. Run by slashing-signers.ts.

import { systemClock } from '../../common/observe/clock.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashableMessage, SlashingBackend } from '../../signer/slashing/types.ts';
import { unrestrained } from './restrained.ts';
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
  const protection = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });
  const reasonOf = (error: unknown): string => (error instanceof SignerError ? error.reason : String(error));
  const answer = (id: number, outcome: string): void => void process.send?.({ id, outcome } satisfies SignerAnswer);
  let group: SignerRequest[] = [];
  const askGroup = async (): Promise<void> => {
    const asked = group;
    group = [];
    const never = new AbortController().signal;
    const messages = asked.map(({ message }) => message);
    const outcomes = await protection
      .checkGroup(messages, never)
      .catch((error: unknown) => messages.map(() => ({ kind: 'failed', error }) as const));
    for (const [place, { id }] of asked.entries()) {
      const outcome = outcomes[place];
      if (outcome === undefined) answer(id, 'no outcome');
      else if (outcome.kind === 'failed') answer(id, reasonOf(outcome.error));
      else answer(id, outcome.kind === 'safe' ? 'safe' : outcome.reason);
    }
  };
  process.on('message', ({ id, message }: SignerRequest) => {
    // Every other message comes with others of other keys, as in a batch; the rest are single messages.
    const isGrouped = id % 2 === 0 && group.every((other) => other.message.publicKey !== message.publicKey);
    if (isGrouped) {
      if (group.push({ id, message }) === 1) setImmediate(() => void askGroup());
      return;
    }
    protection.check(message).then(
      (checked) => answer(id, checked.kind === 'safe' ? 'safe' : checked.reason),
      (error: unknown) => answer(id, reasonOf(error)),
    );
  });
  process.send?.('ready');
}
