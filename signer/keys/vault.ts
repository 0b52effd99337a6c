// Where secret keys lie: a BLS core, as far as a signer's keys need it. No caller gets a secret back.

export const SECRET_KEY_BYTES = 32;

/** Meaningless outside the core that gave it. */
export type KeyHandle = number & { readonly __brand: 'KeyHandle' };

export interface HeldKey {
  readonly handle: KeyHandle;
  readonly publicKey: Uint8Array;
}

export interface SecretKeyVault {
  /** @param secretKey 32 bytes, big endian, copied @throws RangeError when it is zero or not below the group order */
  addKey(secretKey: Uint8Array): HeldKey;
  /**
   * @param secretKeys 32 bytes each, big endian, at most MAX_KEYS_AT_ONCE of bls/bls.ts, copied before it returns
   * @returns in order; undefined where the scalar is zero or not below the group order. Rejects with SignerError
   * `signing_unavailable`, and with another error when there is no memory: then none of them is held.
   */
  addKeys(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]>;
  /**
   * Of a share of a distributed key. A vault without it takes no shares: the portable core, whose library
   * multiplies no points by scalars of ours. @param commitments 48 bytes each
   * @param participantId 1 to 32 @returns 48 bytes; undefined when a commitment is no point of the group
   */
  sharePublicKey?(commitments: Uint8Array, participantId: number): Uint8Array | undefined;
  /** Jobs under way with it finish; later ones reject. Unknown handles are ignored. */
  removeKey(handle: KeyHandle): void;
  wipe(): void;
}
