// The schemas of signing requests, by the rows of the operations (specification/signing.md#bodies). A hint never names
// the value.

import { z } from 'zod';
import { explainIssue } from '../../common/formats/issues.ts';
import type { Operation } from '../api/operations.ts';
import { forkVersion, refuseValue, root, uint64, upperCaseWord } from '../api/primitives.ts';
import type { OperationRow } from './row.ts';
import { ROWS } from './rows.ts';

/** Web3Signer's OpenAPI examples spell the versions both ways; they may not contradict each other. */
const fork = z
  .object({
    previous_version: forkVersion.optional(),
    current_version: forkVersion.optional(),
    previousVersion: forkVersion.optional(),
    currentVersion: forkVersion.optional(),
    // An epoch here is only compared and never recorded: FAR_FUTURE_EPOCH (2^64 - 1) is a fork's epoch too.
    epoch: uint64,
  })
  .transform((members, context) => ({
    previousVersion: oneVersion('previous_version', members.previous_version, members.previousVersion, context),
    currentVersion: oneVersion('current_version', members.current_version, members.currentVersion, context),
    epoch: members.epoch,
  }));

function oneVersion(
  name: string,
  version: Uint8Array | undefined,
  sameByOtherName: Uint8Array | undefined,
  context: z.RefinementCtx,
): Uint8Array {
  const found = version ?? sameByOtherName;
  if (found === undefined) return refuseValue(context, undefined, `${name} is missing`);
  if (version && sameByOtherName && !Buffer.from(version).equals(sameByOtherName)) {
    return refuseValue(context, undefined, `${name} is given twice and differs`);
  }
  return found;
}

const forkInfo = z
  .object({ fork, genesis_validators_root: root })
  .transform((info) => ({ ...info.fork, genesisValidatorsRoot: info.genesis_validators_root }));

/** A client that sends one is held to it: it names the network the client believes to be on. */
const forkInfoOrNone = forkInfo.nullish().transform((value) => value ?? undefined);

type Rows = typeof ROWS;

interface RequestOf<Name extends Operation> {
  readonly operation: Name;
  readonly forkInfo: Rows[Name]['fork'] extends 'genesis' ? ForkInfo | undefined : ForkInfo;
  readonly givenSigningRoot: Uint8Array | undefined;
  readonly givenGenesisForkVersion: Uint8Array | undefined;
  readonly message: z.output<Rows[Name]['message']>;
}

export type SignRequest = { [Name in Operation]: RequestOf<Name> }[Operation];

/** By `type` as it stands on the wire, standard names and those of clients. */
export const SIGN_REQUEST_SCHEMAS: ReadonlyMap<string, z.ZodType<SignRequest>> = new Map(
  Object.entries<OperationRow>(ROWS).flatMap(([operation, row]) => {
    const schema = body(operation as Operation, row) as unknown as z.ZodType<SignRequest>;
    return [operation, ...(row.otherTypes ?? [])].map((type) => [type, schema] as const);
  }),
);

export type ForkInfo = z.output<typeof forkInfo>;

export type ParsedSignRequest =
  | { readonly kind: 'request'; readonly request: SignRequest }
  | {
      readonly kind: 'refused';
      readonly reason: 'malformed_body' | 'unsupported_operation' | 'unsupported_fork';
      readonly hint: string;
    };

/** @param value a JSON document */
export function readSignRequest(value: object, type: string): ParsedSignRequest {
  const schema = SIGN_REQUEST_SCHEMAS.get(upperCaseWord(type) ?? '');
  if (schema === undefined) {
    return { kind: 'refused', reason: 'unsupported_operation', hint: 'type: no operation of this signer' };
  }
  const result = schema.safeParse(value, { error: explainIssue });
  return result.success ? { kind: 'request', request: result.data } : refusalOf(result.error);
}

export function isEnvelopeRequest(value: unknown): boolean {
  const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined;
  return upperCaseWord(type) === 'EXECUTION_PAYLOAD_ENVELOPE';
}

interface Envelope {
  readonly signingRoot?: Uint8Array | null | undefined;
  readonly signing_root?: Uint8Array | null | undefined;
  readonly genesis_fork_version?: Uint8Array | null | undefined;
  readonly fork_info?: unknown;
}

function body(operation: Operation, { members: names, message, fork }: OperationRow) {
  const envelope = z.object({
    type: z.string().meta({ description: 'the name of the type, in any case' }),
    signingRoot: root.nullish(),
    signing_root: root.nullish(),
    /** Names the network where no genesis_validators_root does: compared, as that is. */
    genesis_fork_version: forkVersion.nullish(),
    fork_info: fork === 'genesis' ? forkInfoOrNone : forkInfo,
  });
  const ofMessage = names.length === 1 ? message : message.nullish();
  return envelope.extend(Object.fromEntries(names.map((name) => [name, ofMessage]))).transform((members, context) => {
    const { signingRoot, signing_root: sameByOtherName, genesis_fork_version, fork_info } = members as Envelope;
    if (signingRoot && sameByOtherName && !Buffer.from(signingRoot).equals(sameByOtherName)) {
      return refuseValue(context, members, 'signingRoot and signing_root differ');
    }
    const [given, another] = names.filter((name) => members[name] !== undefined && members[name] !== null);
    if (given === undefined) return refuseValue(context, members, `${names[0]} is missing`);
    if (another !== undefined) return refuseValue(context, members, `carries both ${given} and ${another}`);
    return {
      operation,
      forkInfo: fork_info,
      givenSigningRoot: signingRoot ?? sameByOtherName ?? undefined,
      givenGenesisForkVersion: genesis_fork_version ?? undefined,
      message: members[given],
    };
  });
}

/** A fork we do not know explains whatever else does not fit, so it is told first. */
function refusalOf(error: z.ZodError): ParsedSignRequest {
  const unknownFork = error.issues.find(
    (issue) => issue.code === 'custom' && issue.params?.['reason'] === 'unsupported_fork',
  );
  const issue = unknownFork ?? error.issues[0];
  const place = issue?.path.join('.') ?? '';
  const problem = issue?.code === 'invalid_type' ? `expected an ${issue.expected}` : issue?.message;
  return {
    kind: 'refused',
    reason: unknownFork === undefined ? 'malformed_body' : 'unsupported_fork',
    hint: place === '' ? `${problem}` : `${place}: ${problem}`,
  };
}
