// `strongroom operator recover`: what recovery takes, and with --yes the deletion of exactly the latch that it has read
// and that the replica says it is sealed by (specification/custody.md#states). It touches no other row, and no signer.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { renderFields } from '../../common/command-line/table.ts';
import { note, type Terminal } from '../../common/command-line/terminal.ts';
import { printable } from '../../common/command-line/text.ts';
import { wrap } from '../../common/command-line/wrap.ts';
import { type Health, healthSchema } from '../../signer/api/health.ts';
import { type Client, HEALTH } from '../client.ts';
import { remoteCommand } from '../command.ts';
import { CommandFailure, ForeignAnswer, localFailure, SignerRefusal, UsageFailure } from '../exit.ts';
import type { LatchRow, LatchTable, OpenLatchTable } from '../recovery/latch-table.ts';
import {
  afterDeletion,
  foreignAnswer,
  type RecoveryStep,
  refusing,
  type Trouble,
  troublesOf,
  unreachableTrouble,
} from '../recovery/steps.ts';

export const recover = remoteCommand(
  {
    summary: 'Say what recovery takes; with --yes delete the latch of a sealed fleet',
    flags: {
      table: { placeholder: 'TABLE', meaning: 'The state table (signer_state.table), by name or ARN; for --yes' },
      yes: { meaning: 'Delete the latch, with the AWS credentials of the environment' },
    },
    notes: [
      'Without --yes it only prints. With it the row is deleted if it is still the one that was read, and if the ' +
        'replica at the URL, when one answers, is sealed by it. When something else answers there, nothing is deleted. ' +
        'Then restart every replica.',
    ],
    examples: ['recover', 'recover --table strongroom-state --yes'],
  },

  async ({ values: { table, yes }, client, output, terminal, openLatchTable }) => {
    if (yes && table === undefined) throw new UsageFailure('--yes needs --table: which state table holds the latch');
    const health = await healthOf(client);
    const troubles = health instanceof CommandFailure ? [troubleOf(health, table)] : troublesOf(health, table);
    const removed = yes && table !== undefined ? await removeLatch(table, { health, terminal, openLatchTable }) : null;
    const value = { troubles, removed };
    output.answer({ value, text: JSON.stringify(jsonOf(value)) }, render);
    if (removed !== null) note(terminal, 'the latch is deleted: now restart every replica, and look at each');
  },
);

interface Report {
  readonly troubles: readonly Trouble[];
  readonly removed: LatchRow | null;
}

async function healthOf(client: Client): Promise<Health | CommandFailure> {
  try {
    return (await client.request(HEALTH, healthSchema)).value;
  } catch (error) {
    // Evidence that is not that of the expected enclave is no signer that is merely away.
    if (error instanceof ForeignAnswer) return error;
    if (error instanceof CommandFailure && error.exitCode === EXIT.refused) return error;
    throw error;
  }
}

function troubleOf(failure: CommandFailure, table: string | undefined): Trouble {
  if (failure instanceof ForeignAnswer) return foreignAnswer(failure.message);
  return failure instanceof SignerRefusal ? refusing(failure.message) : unreachableTrouble(failure.message, table);
}

interface RemovalParts {
  readonly health: Health | CommandFailure;
  readonly terminal: Terminal;
  readonly openLatchTable: OpenLatchTable | undefined;
}

async function removeLatch(table: string, { health, terminal, openLatchTable }: RemovalParts): Promise<LatchRow> {
  if (health instanceof ForeignAnswer) {
    throw new CommandFailure(
      EXIT.refused,
      `what answers at the URL is no strongroom: nothing was deleted (${health.message})`,
      'name a replica by its own address with --signer-url; one that is stopped may be named, too',
    );
  }
  const chamber = health instanceof CommandFailure ? undefined : health.checks.find(({ id }) => id === 'chamber');
  if (!(health instanceof CommandFailure) && chamber?.sealed_at === undefined) {
    throw localFailure('the signer is not sealed: there is nothing to delete', 'leave --yes out to see what is wrong');
  }
  if (health instanceof CommandFailure)
    note(terminal, `warning: ${health.message}; the table alone says what is deleted`);
  if (openLatchTable === undefined) throw new Error('this program was started without a way to the tables');
  const rows = await openLatchTable(table);
  try {
    return await removeFrom(rows, table, chamber);
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    throw localFailure(
      `the state table ${printable(table)} cannot be used: ${printable(said)}`,
      'check name, region (AWS_REGION) and credentials; GetItem and DeleteItem are needed',
    );
  } finally {
    rows.close();
  }
}

async function removeFrom(
  rows: LatchTable,
  table: string,
  chamber: Health['checks'][number] | undefined,
): Promise<LatchRow> {
  const latch = await rows.read();
  if (latch === undefined) {
    throw localFailure(
      `there is no SEAL_OVERRIDE row in ${printable(table)}`,
      'restart the replicas if it was deleted before; else this is another table than theirs',
    );
  }
  if (chamber !== undefined && !isSame(latch, chamber)) {
    throw localFailure(
      `the latch in ${printable(table)} is not the one that the signer is sealed by: nothing was deleted`,
      'is it the table of this signer? `operator status` shows when the signer was sealed',
    );
  }
  if ((await rows.delete(latch)) === 'deleted') return latch;
  throw localFailure('the latch changed while it was looked at: nothing was deleted', 'look who seals, and why');
}

/** The signer shows null for a latch whose time cannot be read. */
function isSame(latch: LatchRow, { sealed_at }: Health['checks'][number]): boolean {
  const time = Date.parse(latch.sealedAt ?? '');
  const shown = Number.isNaN(time) ? null : new Date(time).toISOString();
  return shown === (sealed_at ?? null);
}

function jsonOf({ troubles, removed }: Report) {
  const latch = removed && { sealed_at: removed.sealedAt, reason: removed.reason, accessor: removed.accessor };
  return { healthy: troubles.length === 0, removed_latch: latch, troubles };
}

const STEP_COLUMNS = 5;

function render({ troubles, removed }: Report, columns: number): string {
  if (removed !== null) return renderRemoved(removed, columns);
  if (troubles.length === 0) return 'nothing to recover: every check of the signer is UP\n';
  return troubles
    .map(({ state, means, steps }) => {
      const head = wrap(`${state}: ${printable(means)}`, columns).join('\n');
      return `${head}\n\n${renderSteps(steps, columns)}`;
    })
    .join('\n');
}

/** What it said is worth keeping: the row that said it is gone. */
function renderRemoved({ sealedAt, reason, accessor }: LatchRow, columns: number): string {
  const fields: (readonly [string, string])[] = [
    ['deleted', 'the latch, SEAL_OVERRIDE'],
    ['sealed at', sealedAt ?? 'a time not recorded'],
    ['sealed by', accessor ?? 'nobody named'],
    ['reason', reason ?? 'no reason given'],
  ];
  return `${renderFields(fields, columns)}\nwhat is left:\n\n${renderSteps(afterDeletion(accessor), columns)}`;
}

function renderSteps(steps: readonly RecoveryStep[], columns: number): string {
  // A command stays one line, to be copied.
  const lines = steps.flatMap(({ what, command }, index) => [
    ...wrap(what, columns - STEP_COLUMNS).map(
      (line, at) => `${at === 0 ? `${index + 1}.`.padEnd(STEP_COLUMNS - 2) : '   '}${line}`,
    ),
    ...(command === null ? [] : [`     ${printable(command)}`]),
  ]);
  return lines.map((line) => `  ${line}\n`).join('');
}
