// Where secret keys lie: a BLS core, as far as a signer's keys need it. No caller gets a secret back.

export const SECRET_KEY_BYTES = 32;

/** Meaningless outside the core that gave it. */
export type KeyHandle = number & { readonly __brand: 'KeyHandle' };

export interface HeldKey {
  readonly handle: KeyHandle;
  readonly publicKey: Uint8Array;
}

export interface SecretKeyVault {
  addKey(secretKey: Uint8Array): HeldKey;
  addKeys(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]>;
  removeKey(handle: KeyHandle): void;
  wipe(): void;
}
