// The Nitro Secure Module as the signer uses it (specification/enclave.md#nsm).

/** The addon's ioctl is one; the emulator of the tests another. */
export type NsmDevice = (request: Buffer) => Promise<Buffer>;

export interface NsmDescription {
  readonly moduleId: string;
  readonly maxPcrs: number;
  readonly lockedPcrs: readonly number[];
  readonly digest: string;
}

export interface AttestationFields {
  /** At most 1024 bytes each. */
  readonly userData?: Uint8Array;
  readonly nonce?: Uint8Array;
  readonly publicKey?: Uint8Array;
}

/** aws-nitro-enclaves-nsm-api, src/api/mod.rs. */
const NSM_OPERATIONS = ['DescribeNSM', 'DescribePCR', 'ExtendPCR', 'LockPCR', 'GetRandom', 'Attestation'] as const;
export type NsmOperation = (typeof NSM_OPERATIONS)[number];

/** `refused` is the device's own word, `failed` everything else. */
export type NsmOutcome = 'ok' | 'refused' | 'failed';

export interface NsmCallCount {
  readonly operation: NsmOperation;
  readonly outcome: NsmOutcome;
  readonly count: number;
}

/** The image's (0, 1, 2), its signature's (8), and ours. */
export const REPORTED_PCRS = [0, 1, 2, 8, 16, 17] as const;

export type Measurements = Readonly<Record<string, string>>;

/** Every method throws an NsmError: the device's own word (`InvalidArgument`, …) or what went wrong. */
export interface Nsm {
  /** Its documents carry no signature and no certificates: as the image states. */
  readonly signsNothing?: true;
  describe(): Promise<NsmDescription>;
  describePcr(index: number): Promise<{ readonly value: Buffer; readonly locked: boolean }>;
  extendPcr(index: number, data: Uint8Array): Promise<Buffer>;
  lockPcr(index: number): Promise<void>;
  /** 256 bytes, the caller's to wipe. */
  random(): Promise<Buffer>;
  /** COSE_Sign1, as it came. */
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
