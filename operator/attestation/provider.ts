// Who makes attestation documents, and the one root that its documents lead to. The trust root belongs to the provider:
// tests hand the program another provider, and no flag, variable or file of an operator can
// (specification/evidence.md#checks).

export interface DocumentProvider {
  readonly name: string;
  /** SHA-256 of the root certificate's DER, hex. */
  readonly rootSha256: string;
}

/** AWS_NitroEnclaves_Root-G1, good until 2049 (AWS Nitro Enclaves attestation process, §3.2). */
export const AWS_NITRO: DocumentProvider = {
  name: 'AWS Nitro Enclaves',
  rootSha256: '641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b',
};
