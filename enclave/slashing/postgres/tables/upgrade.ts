// What SQL cannot do of step 2 of the schema: bind a new database to its network and key, seal the heads of a database
// of step 1, and make the record of the store. Every key is verified under its old code first, with all its entries: a
// damaged one stops the upgrade, and the database stays as it was.

import { SignerError } from '../../../api/errors.ts';
import { entrySum, type HistoryCodes } from '../../history/codes.ts';
import type { RowIntegrity } from '../../history/integrity.ts';
import { type KeyState, NEW_KEY } from '../../history/state.ts';
import type { Connection } from '../connection/connections.ts';
import type { ServerIdentity } from '../connection/server.ts';
import type { StepWork } from './migrate.ts';
import { execute, updateHeads } from './record.ts';
import {
  type BlockRow,
  HEAD_COLUMNS,
  type HeadRow,
  keyHex,
  readBlockRows,
  readVoteRows,
  type VoteRow,
} from './rows.ts';
import { createStore } from './store.ts';

// The queries read the tables as this step finds them. They stay when those of whole.ts change.
const PAGE_KEYS = 500;
const PAGE_ROWS = 1_000;

const PAGE_OF_HEADS = `
  SELECT ${HEAD_COLUMNS} FROM strongroom.validators WHERE id > $1 ORDER BY id LIMIT ${PAGE_KEYS}`;

const PAGE_OF_BLOCKS = `
  SELECT slot, signing_root, code FROM strongroom.blocks
  WHERE validator_id = $1 AND slot > $2 ORDER BY slot LIMIT ${PAGE_ROWS}`;

const PAGE_OF_VOTES = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
  WHERE validator_id = $1 AND (target_epoch, source_epoch) > ($2, $3)
  ORDER BY target_epoch, source_epoch LIMIT ${PAGE_ROWS}`;

export interface UpgradeTools {
  readonly codes: HistoryCodes;
  readonly integrity: RowIntegrity;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  readonly server: () => Promise<ServerIdentity>;
}

export function stepWork(tools: UpgradeTools): StepWork {
  return new Map([[2, (connection: Connection) => sealHeads(connection, tools)]]);
}

/** A database of step 1 may not be bound yet either: its first signer may have ended early. */
async function bindWhileEmpty(
  connection: Connection,
  { integrity, genesisValidatorsRoot }: UpgradeTools,
): Promise<void> {
  const text = `
    INSERT INTO strongroom.binding (genesis_validators_root, code)
    SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM strongroom.validators) ON CONFLICT DO NOTHING`;
  await connection.query(text, [genesisValidatorsRoot, bindingCode(integrity, genesisValidatorsRoot)]);
}

/** Refuse a database that is bound to another network, or to another key of the codes. */
export async function checkBinding(
  connection: Connection,
  { integrity, genesisValidatorsRoot }: Pick<UpgradeTools, 'integrity' | 'genesisValidatorsRoot'>,
): Promise<void> {
  const row = await bindingOf(connection);
  if (row === undefined) throw new Error('the binding of the slashing database is not there');
  confirmRoot(row, genesisValidatorsRoot);
  if (!row.code.equals(bindingCode(integrity, genesisValidatorsRoot))) {
    throw new SignerError('slashing_integrity', { hint: 'the slashing database was written with another key' });
  }
}

/**
 * The part of checkBinding that needs no key.
 * @param mayBeUnbound in step 1 a database could be left unbound, and is bound by the next
 */
export async function checkNetwork(
  connection: Connection,
  genesisValidatorsRoot: Uint8Array,
  mayBeUnbound: boolean,
): Promise<void> {
  const row = await bindingOf(connection);
  if (row !== undefined) confirmRoot(row, genesisValidatorsRoot);
  else if (!mayBeUnbound) throw new Error('the binding of the slashing database is not there');
}

interface BindingRow {
  readonly genesis_validators_root: Buffer;
  readonly code: Buffer;
}

async function bindingOf(connection: Connection): Promise<BindingRow | undefined> {
  const { rows } = await connection.query<BindingRow>('SELECT genesis_validators_root, code FROM strongroom.binding');
  return rows[0];
}

function confirmRoot({ genesis_validators_root: root }: BindingRow, genesisValidatorsRoot: Uint8Array): void {
  if (root.equals(genesisValidatorsRoot)) return;
  const hint = 'the slashing database is bound to another genesis validators root';
  throw new SignerError('slashing_unavailable', { hint });
}

async function sealHeads(connection: Connection, tools: UpgradeTools): Promise<void> {
  await bindWhileEmpty(connection, tools);
  await checkBinding(connection, tools);
  for (let last = 0; ; ) {
    const { rows } = await connection.query<HeadRow>(PAGE_OF_HEADS, [last]);
    const heads = await Promise.all(
      rows.map(async (head) => ({ head, state: await verifiedState(connection, tools, head) })),
    );
    if (heads.length > 0) await execute(connection, updateHeads(tools.codes, heads));
    last = rows.at(-1)?.id ?? last;
    if (rows.length < PAGE_KEYS) break;
  }
  await createStore(connection, tools.codes, await tools.server());
}

/** The state of a key whose head and entries are those that step 1 wrote. */
async function verifiedState(
  connection: Connection,
  { codes, integrity }: UpgradeTools,
  head: HeadRow,
): Promise<KeyState> {
  const damage = () => {
    const hint = 'the slashing database is not upgraded, because the record of a key fails its integrity check';
    return new SignerError('slashing_integrity', { hint, detail: { public_key: keyHex(head.public_key) } });
  };
  if (!isOldHead(integrity, head)) throw damage();
  const [blocks, attestations] = [entrySum(), entrySum()];
  for (let last = -1; ; ) {
    const { rows } = await connection.query<BlockRow>({
      name: 'upgrade_blocks',
      text: PAGE_OF_BLOCKS,
      values: [head.id, last],
    });
    const page = readBlockRows(codes, head.public_key, rows);
    if (page === undefined) throw damage();
    for (const { element } of page.codes) blocks.add(element);
    last = page.entries.at(-1)?.slot ?? last;
    if (rows.length < PAGE_ROWS) break;
  }
  for (let last = [-1, -1]; ; ) {
    const { rows } = await connection.query<VoteRow>({
      name: 'upgrade_votes',
      text: PAGE_OF_VOTES,
      values: [head.id, ...last],
    });
    const page = readVoteRows(codes, head.public_key, rows);
    if (page === undefined) throw damage();
    for (const { element } of page.codes) attestations.add(element);
    const end = page.entries.at(-1);
    if (end === undefined || rows.length < PAGE_ROWS) break;
    last = [end.targetEpoch, end.sourceEpoch];
  }
  const sets = { blocks: blocks.set(), attestations: attestations.set() };
  if (sets.blocks.count !== head.blocks || sets.attestations.count !== head.attestations) throw damage();
  return { ...marksOf(head), ...sets, prunedBelow: NEW_KEY.prunedBelow, isRetired: false };
}

function marksOf(head: HeadRow): Pick<KeyState, 'highest' | 'lowWater'> {
  return {
    highest: {
      blockSlot: head.highest_slot,
      sourceEpoch: head.highest_source_epoch,
      targetEpoch: head.highest_target_epoch,
    },
    lowWater: {
      slot: head.low_water_slot,
      sourceEpoch: head.low_water_source_epoch,
      targetEpoch: head.low_water_target_epoch,
    },
  };
}

/** The code of a head as step 1 wrote it: over the marks and the counts. */
function isOldHead(integrity: RowIntegrity, head: HeadRow): boolean {
  const { highest, lowWater } = marksOf(head);
  const fields = [
    ...[highest.blockSlot, highest.sourceEpoch, highest.targetEpoch],
    ...[lowWater.slot, lowWater.sourceEpoch, lowWater.targetEpoch],
    ...[head.blocks, head.attestations],
  ];
  const arePossible = fields.every((field) => field === null || (Number.isSafeInteger(field) && field >= 0));
  return arePossible && integrity.verify(head.code, 'validator', head.public_key, fields);
}

function bindingCode(integrity: RowIntegrity, genesisValidatorsRoot: Uint8Array): Uint8Array {
  return integrity.code('binding', NO_PUBLIC_KEY, [genesisValidatorsRoot]);
}

const NO_PUBLIC_KEY = new Uint8Array(48);
