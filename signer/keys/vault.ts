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
  /**
   * Of a share of a distributed key. A vault without it takes no shares. @param commitments 48 bytes each
   * @param participantId 1 to 32 @returns 48 bytes; undefined when a commitment is no point of the group
   */
  sharePublicKey?(commitments: Uint8Array, participantId: number): Uint8Array | undefined;
  removeKey(handle: KeyHandle): void;
  wipe(): void;
}
