// What the main thread may ask of the database worker, and what it gets back. Histories travel as JSON text and
// batches as one buffer: a structured clone of every entry would cost more than the database does.

import type {
  HighWaterMarks,
  ImportConflict,
  MergeStrategy,
  PublicKeyHex,
  StoreFloor,
  StoreIdentity,
} from '../types.ts';
import type { FileName } from './file/open-files.ts';
import type { StagedHistory } from './history-text.ts';

export interface MergeCounts {
  /** Keys named by the import. */
  readonly validators: number;
  readonly alreadyPresent: number;
  readonly conflicts: number;
  readonly conflicting: readonly ImportConflict[];
}

export interface DatabaseCalls {
  /** A database of an older version is upgraded, and an import that was decided is finished. */
  open: [arguments_: Record<string, never>, result: { file: FileName; isUpgraded: boolean }];
  /** wire.ts, both ways. */
  check: [arguments_: { batch: ArrayBuffer }, result: Uint8Array<ArrayBuffer>];
  health: [arguments_: Record<string, never>, result: null];
  /** Keep histories aside; nothing is merged yet. */
  stage: [arguments_: { importId: number; histories: StagedHistory[] }, result: null];
  /** Merge everything that was staged, all or nothing; `staged` is how many histories that must be. */
  merge: [arguments_: { importId: number; staged: number; strategy: MergeStrategy }, result: MergeCounts];
  discard: [arguments_: { importId: number }, result: null];
  beginExport: [arguments_: { exportId: number; publicKeys: readonly PublicKeyHex[] | null }, result: null];
  /** The next histories; none at the end. */
  continueExport: [arguments_: { exportId: number }, result: string[]];
  endExport: [arguments_: { exportId: number }, result: null];
  /** One slice of the keys: how many entries went, and where to go on (null: all keys were looked at). */
  prune: [arguments_: { afterId: number; maxEntries: number }, result: { deleted: number; nextId: number | null }];
  status: [arguments_: Record<string, never>, result: { validators: number; blocks: number; attestations: number }];
  identity: [arguments_: Record<string, never>, result: StoreIdentity];
  /** A revision higher than before, and at least this one; with a floor, that too. */
  raise: [arguments_: { revision: number; floor: StoreFloor | null }, result: StoreIdentity];
  highest: [arguments_: Record<string, never>, result: HighWaterMarks];
  retire: [arguments_: { publicKeys: readonly PublicKeyHex[] }, result: null];
  reinstate: [arguments_: { publicKeys: readonly PublicKeyHex[] }, result: PublicKeyHex[]];
  retired: [arguments_: { publicKeys: readonly PublicKeyHex[] | null }, result: PublicKeyHex[]];
  close: [arguments_: Record<string, never>, result: null];
}

export type DatabaseCall = keyof DatabaseCalls;

export interface CallMessage {
  readonly id: number;
  readonly call: DatabaseCall;
  readonly arguments_: unknown;
}

export type ReplyMessage =
  | { readonly id: number; readonly result: unknown }
  | {
      readonly id: number;
      readonly reason: 'slashing_unavailable' | 'slashing_integrity';
      readonly error: unknown;
      /** For whoever reads the answer. */
      readonly hint: string | undefined;
    };

/** `workerData` of the database worker. */
export interface DatabaseWorkerData {
  readonly path: string;
  readonly genesisValidatorsRoot: Uint8Array;
  readonly integrityKey: Uint8Array | undefined;
  /** What the database was when this process opened it first. */
  readonly file: FileName | undefined;
}
