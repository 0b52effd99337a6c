// An enclave as the recipient of what KMS decrypts (specification/enclave.md#kms).

/** Also the only KeyEncryptionAlgorithm that KMS knows. */
export const KEY_ENCRYPTION_ALGORITHM = 'RSAES_OAEP_SHA_256';

export interface KmsRecipient {
  /** KMS takes none that is older than five minutes. @throws NsmError */
  attest(): Promise<Buffer>;
  /** The caller's to wipe. @throws CmsError */
  open(ciphertextForRecipient: Uint8Array): Buffer;
}

/** AWS KMS API Reference, Decrypt: CiphertextForRecipient. */
export const MAX_CMS_BYTES = 6144;

const CMS_PROBLEMS = {
  too_large: `more than ${MAX_CMS_BYTES} bytes`,
  not_ber: 'not one BER value, or not in its strict form',
  trailing_bytes: 'bytes after the value',
  not_enveloped_data: 'not the structure of CMS EnvelopedData as KMS sends it',
  version: 'a version other than 2',
  recipients: 'not exactly one recipient who is named by subjectKeyIdentifier',
  key_encryption:
    'the content key is not encrypted with RSAES-OAEP, SHA-256 and MGF1 with SHA-256, under a key of 2048 bits',
  content_encryption: 'the content is not encrypted with AES-256-CBC',
  content_size: 'a content of a size that is none',
  other_recipient: 'made for the key of another process',
  undecryptable: 'it does not open with the key of this process',
} as const;

export type CmsProblem = keyof typeof CMS_PROBLEMS;

export class CmsError extends Error {
  readonly problem: CmsProblem;

  constructor(problem: CmsProblem) {
    super(`CMS envelope: ${CMS_PROBLEMS[problem]}`);
    this.name = 'CmsError';
    this.problem = problem;
  }
}
