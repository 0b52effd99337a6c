// What can be wrong with evidence. Good evidence may still be of another enclave than was asked for.

export type Fault = 'not_authentic' | 'not_expected' | 'no_reference_values';

interface FailureEntry {
  readonly fault: Fault;
  readonly meaning: string;
  readonly advice?: string;
}

const CLOCK_ADVICE =
  'check the clock of this machine; for evidence kept from earlier, say when it is to be judged (verify --at)';
const STRANGER_ADVICE =
  'nothing was sent; whoever answers there is not the enclave: check the URL, then what runs behind it';

export const FAILURES = {
  no_evidence: {
    fault: 'not_authentic',
    meaning: 'the certificate carries no attestation evidence',
    advice:
      'does the URL lead to the RA-TLS listener of an enclave? An ordinary signer is used without reference values',
  },
  malformed_evidence: {
    fault: 'not_authentic',
    meaning: 'the evidence in the certificate is not of the one known form',
  },
  malformed_document: {
    fault: 'not_authentic',
    meaning: 'this is not a COSE_Sign1 structure of the one accepted form',
  },
  wrong_algorithm: { fault: 'not_authentic', meaning: 'the document is not signed with ES384' },
  malformed_payload: {
    fault: 'not_authentic',
    meaning: 'a field of the document is missing, unknown or out of its limits',
  },
  malformed_certificate: { fault: 'not_authentic', meaning: 'a certificate cannot be read' },
  untrusted_root: { fault: 'not_authentic', meaning: 'the chain does not end in the root of the provider' },
  not_yet_valid: { fault: 'not_authentic', meaning: 'a certificate is not valid yet', advice: CLOCK_ADVICE },
  expired: { fault: 'not_authentic', meaning: 'a certificate has expired', advice: CLOCK_ADVICE },
  broken_chain: { fault: 'not_authentic', meaning: 'a certificate was not issued by the next one' },
  certificate_misuse: { fault: 'not_authentic', meaning: 'a certificate is used for what it may not be used for' },
  unknown_critical_extension: {
    fault: 'not_authentic',
    meaning: 'a certificate has a critical extension that nobody handles',
  },
  bad_signature: { fault: 'not_authentic', meaning: 'the signature of the document does not verify' },
  stale: {
    fault: 'not_authentic',
    meaning: 'the document is older than accepted',
    advice: 'ask for a fresh one; or, if so old a document is good enough, --max-age SECONDS',
  },
  from_the_future: {
    fault: 'not_authentic',
    meaning: 'the document was made after the time it is judged at',
    advice: CLOCK_ADVICE,
  },
  nonce_mismatch: { fault: 'not_authentic', meaning: 'the document does not carry the nonce that was asked for' },
  relayed: {
    fault: 'not_authentic',
    meaning: 'the document was made for another connection or another request: relayed, or replayed',
    advice: STRANGER_ADVICE,
  },
  wrong_key: {
    fault: 'not_authentic',
    meaning: 'the document is of another TLS key than the one that answers',
    advice: STRANGER_ADVICE,
  },
  debug: {
    fault: 'not_expected',
    meaning:
      'the enclave runs in debug mode, or is not measured: its memory and console are open to the parent instance',
    advice: 'run the enclave without --debug-mode; no reference value accepts one',
  },
  wrong_pcr: {
    fault: 'not_expected',
    meaning: 'a register has none of the values that were asked for',
    advice: 'is another release or configuration running? Compare with pcrs.json of `strongroom eif build`',
  },
  no_reference_values: {
    fault: 'no_reference_values',
    meaning: 'no reference values were given, which say what image is expected',
    advice: 'give the pcrs.json of the image with --pcrs, or single registers with --pcr 0=HEX',
  },
} as const satisfies Record<string, FailureEntry>;

export type FailureCode = keyof typeof FAILURES;

export interface EvidenceFailure {
  readonly code: FailureCode;
  readonly detail: string;
  readonly pcr?: number;
}

export class EvidenceError extends Error {
  readonly failures: readonly [EvidenceFailure, ...EvidenceFailure[]];

  constructor(...failures: readonly [EvidenceFailure, ...EvidenceFailure[]]) {
    super(failures.map(({ code, detail }) => `${code}: ${detail}`).join('; '));
    this.name = 'EvidenceError';
    this.failures = failures;
  }
}

export function demand(condition: boolean, code: FailureCode, detail: string): asserts condition {
  if (!condition) throw new EvidenceError({ code, detail });
}
