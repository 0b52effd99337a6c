// Who makes attestation documents, and the one root that they lead to. Tests hand the program another provider; no
// flag, variable or file of an operator can.

export interface DocumentProvider {
  readonly name: string;
  readonly rootSha256: string;
}

/** AWS_NitroEnclaves_Root-G1, good until 2049 (AWS Nitro Enclaves attestation process, §3.2). */
export const AWS_NITRO: DocumentProvider = {
  name: 'AWS Nitro Enclaves',
  rootSha256: '641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b',
};
