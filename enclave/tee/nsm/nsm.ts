// The Nitro Secure Module as the signer uses it. One slow device: calls are serialised and bounded by whoever
// implements this (client.ts). Documents contain only locked registers; 16 to 31 are ours to extend
// (specification/enclave.md#nsm).

/**
 * One exchange with the device: a CBOR request, its CBOR answer. The addon's ioctl is one; the emulator of the tests
 * another.
 */
export type NsmDevice = (request: Buffer) => Promise<Buffer>;

export interface NsmDescription {
  readonly moduleId: string;
  readonly maxPcrs: number;
  readonly lockedPcrs: readonly number[];
  /** Always SHA384; anything else is refused. */
  readonly digest: string;
}

export interface AttestationFields {
  /** At most 1024 bytes each (api/attestation.ts). */
  readonly userData?: Uint8Array;
  readonly nonce?: Uint8Array;
  readonly publicKey?: Uint8Array;
}

/** Every method throws an NsmError: the device's own word (`InvalidArgument`, …) or what went wrong on the way. */
export interface Nsm {
  /** Its documents are not signed, and carry no certificates: as the image states (platform.ts). */
  readonly signsNothing?: true;
  describe(): Promise<NsmDescription>;
  /** @returns the register's 48 bytes and whether it is locked */
  describePcr(index: number): Promise<{ readonly value: Buffer; readonly locked: boolean }>;
  /** @returns the register's new value */
  extendPcr(index: number, data: Uint8Array): Promise<Buffer>;
  lockPcr(index: number): Promise<void>;
  /** 256 bytes or what the device gives; the caller wipes them. */
  random(): Promise<Buffer>;
  /** An attestation document: COSE_Sign1, as it came. */
  attest(fields: AttestationFields): Promise<Buffer>;
}

export class NsmError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(`NSM: ${message}`);
    this.name = 'NsmError';
    this.code = code;
  }
}
