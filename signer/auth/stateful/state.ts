// All that auth knows of the state table. Others can write it: nothing counts before rows.ts has verified its HMAC.

export interface AuthRow {
  readonly pk: string;
  /** The head's revision of the commit that wrote the row. */
  readonly revision: number;
  readonly content: string;
  readonly mac: Uint8Array;
}

type AuthChange = { readonly put: AuthRow } | { readonly delete: string /* pk */ };

/** Revision and manifest (pk → code of the live row) under one HMAC: a row that is put back counts as missing. */
export interface AuthHead {
  readonly revision: number;
  readonly manifest: string;
  readonly mac: Uint8Array;
}

export interface AuthWrite {
  readonly changes: readonly AuthChange[];
  readonly head: AuthHead;
}

export interface AuthView {
  readonly head: AuthHead | undefined;
  readonly rows: readonly AuthRow[];
}

/** Every method throws SignerError `state_stale` when the table cannot be used. */
export interface AuthState {
  /** MAX_ROWS_APART at most, each strongly consistent, but not from one moment. */
  readRows(pks: readonly string[]): Promise<readonly AuthRow[]>;
  readTogether(pks: readonly string[]): Promise<AuthView>;
  /** Only while the head's revision is `expectedRevision` (undefined: there is none). */
  commit(
    expectedRevision: number | undefined,
    changes: readonly AuthChange[],
    head: AuthHead,
  ): Promise<'committed' | 'conflict'>;
}

/** Sub-keys of the master key (specification/custody.md#master-key). Their holder wipes them. */
export interface AuthKeys {
  /** `strongroom/auth-row-hmac/v1`, 32 bytes. */
  readonly rows: Uint8Array;
  /** `strongroom/token-hmac/v1`, 32 bytes. */
  readonly tokens: Uint8Array;
}

/** An item of DynamoDB has at most 400 KB; with both counts at their limits the manifest has some 350. */
export const MAX_TOKENS = 4096;
export const MAX_POLICIES = 512;
export const MAX_MANIFEST_BYTES = 380_000;
/** Some 3,700 keys. A token takes 64 policies (api/policy.ts). */
export const MAX_POLICY_BYTES = 380_000;
/** What the service takes in one call. It also bounds what a hostile table can put into memory. */
export const MAX_ROWS_APART = 100;
/** With the head and the largest rows of each kind they stay within the 4 MB of a transaction. */
export const MAX_POLICIES_TOGETHER = 6;
export const MAX_TOKENS_TOGETHER = 64;
/** Every replica holds them in memory. Some 320,000 keys. */
export const MAX_ALL_POLICIES_BYTES = 33_554_432;
