// DynamoDB and KMS as an account with our policies would answer: every call is judged before it reaches the stand-in,
// and what the policies do not allow is refused with AccessDeniedException. What was asked for is kept.

import type { PolicyDocument } from '../../setup/policy-document.ts';
import { tableActionsOf } from './aws-actions.ts';
import { FAULTS, type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { isAllowed } from './policy-judge.ts';

export const ACCOUNT = '111122223333';
export const SIGNER = `arn:aws:iam::${ACCOUNT}:role/strongroom`;
/** Its credentials are sealed for enclaves. */
export const TABLE_USER = `arn:aws:iam::${ACCOUNT}:user/strongroom-tables`;
export const TABLE_USER_KEYS = 'AKIATESTOFTHETABLES';
export const TABLE_USER_ACCESS_KEY_ID = `${TABLE_USER_KEYS}0`;

export interface Policies {
  /** The policy of the role that calls. */
  readonly role: PolicyDocument;
  /** The policy of the table user. */
  readonly user?: PolicyDocument;
  /** The policies of the tables themselves, by name. */
  readonly tables?: Readonly<Record<string, PolicyDocument>>;
  /** The policy of every custody key. */
  readonly key?: PolicyDocument;
  /** In its place that of each custody key, by ARN: one without a policy opens to nobody. */
  readonly keys?: ReadonlyMap<string, PolicyDocument>;
}

export interface GuardedAws {
  readonly endpoints: { readonly dynamodb: string; readonly kms: string };
  /**
   * `table dynamodb:PutItem` and `kms:Decrypt`, those that were let through since the last `use`; of the table user
   * with `user ` before it.
   */
  readonly used: ReadonlySet<string>;
  readonly refused: ReadonlySet<string>;
  use(policies: Policies): void;
  /** The access keys of the table user that are active. */
  readonly tableUserKeys: Set<string>;
  close(): Promise<void>;
}

export interface GuardedOptions {
  readonly region: string;
  readonly dynamodb: string;
  readonly kms: string;
  /** What KMS reads from an attestation document. */
  readonly registersIn?: (document: Buffer) => ReadonlyMap<number, Buffer>;
}

export async function startGuardedAws(options: GuardedOptions): Promise<GuardedAws> {
  const tables = await startFaultProxy(options.dynamodb);
  const keys = await startFaultProxy(options.kms);
  let policies: Policies | undefined;
  const used = new Set<string>();
  const refused = new Set<string>();
  const tableUserKeys = new Set([TABLE_USER_ACCESS_KEY_ID]);
  const callerOf = (accessKeyId: string): Caller => {
    if (tableUserKeys.has(accessKeyId)) return { principal: TABLE_USER, own: policies?.user, mark: 'user ' };
    const isOfUser = accessKeyId.startsWith(TABLE_USER_KEYS); // inactive: it may do nothing
    return { principal: SIGNER, own: isOfUser ? undefined : policies?.role, mark: '' };
  };
  const judged = (name: string, allowed: boolean): boolean => {
    (allowed ? used : refused).add(name);
    return allowed;
  };
  tables.setRule(({ operation, body, accessKeyId }) => {
    const caller = callerOf(accessKeyId);
    const verdicts = tableActionsOf(operation, body).map(({ action, table }) =>
      judged(
        `${caller.mark}${table} ${action}`,
        mayCallTable(policies, caller, { action, table, region: options.region }),
      ),
    );
    return verdicts.every(Boolean) ? undefined : FAULTS.accessDenied;
  });
  keys.setRule(({ operation, body, accessKeyId }) => {
    const caller = callerOf(accessKeyId);
    const isAllowed = mayCallKey(policies, caller, { operation, body: JSON.parse(body) }, options);
    return judged(`${caller.mark}kms:${operation}`, isAllowed) ? undefined : DENIED_BY_KMS;
  });
  return {
    endpoints: { dynamodb: tables.endpoint, kms: keys.endpoint },
    used,
    refused,
    tableUserKeys,
    use(next) {
      policies = next;
      used.clear();
      refused.clear();
    },
    async close() {
      await Promise.all([tables, keys].map((proxy: FaultProxy) => proxy.close()));
    },
  };
}

const DENIED_BY_KMS = { kind: 'error', status: 400, name: 'AccessDeniedException' } as const;

interface Caller {
  readonly principal: string;
  readonly own: PolicyDocument | undefined;
  /** Before what is kept of its calls. */
  readonly mark: string;
}

interface TableCall {
  readonly action: string;
  readonly table: string;
  readonly region: string;
}

function mayCallTable(policies: Policies | undefined, caller: Caller, { action, table, region }: TableCall): boolean {
  if (policies === undefined || caller.own === undefined) return false;
  const { principal } = caller;
  const resource = table.startsWith('arn:') ? table : `arn:aws:dynamodb:${region}:${ACCOUNT}:table/${table}`;
  const own = policies.tables?.[table];
  const denied = own !== undefined && !isAllowed([own, ALL_ALLOWED], { action, resource, principal });
  return !denied && isAllowed([caller.own], { action, resource });
}

/** To see what a policy denies. */
const ALL_ALLOWED: PolicyDocument = {
  Version: '2012-10-17',
  Statement: [{ Sid: 'All', Effect: 'Allow', Principal: '*', Action: ['*'], Resource: '*' }],
};

interface KmsBody {
  readonly KeyId: string;
  readonly EncryptionContext?: Readonly<Record<string, string>>;
  readonly Recipient?: { readonly AttestationDocument: string };
}

function mayCallKey(
  policies: Policies | undefined,
  caller: Caller,
  { operation, body }: { readonly operation: string; readonly body: KmsBody },
  { registersIn }: GuardedOptions,
): boolean {
  if (policies === undefined || caller.own === undefined) return false;
  const { KeyId, EncryptionContext = {}, Recipient } = body;
  const action = `kms:${operation}`;
  const context = Object.fromEntries([
    ...Object.entries(EncryptionContext).map(([name, value]) => [`kms:EncryptionContext:${name}`, value]),
    ...(Recipient === undefined ? [] : attestationContext(Recipient.AttestationDocument, registersIn)),
  ]) as Record<string, string>;
  const byRole = isAllowed([caller.own], { action, resource: KeyId, context });
  if (policies.key === undefined && policies.keys === undefined) return byRole;
  const own = policies.keys === undefined ? policies.key : policies.keys.get(KeyId);
  return (
    byRole && own !== undefined && isAllowed([own], { action, resource: KeyId, principal: caller.principal, context })
  );
}

function attestationContext(
  document: string,
  registersIn: GuardedOptions['registersIn'],
): readonly (readonly [string, string])[] {
  const registers = [...(registersIn?.(Buffer.from(document, 'base64')) ?? [])];
  return registers.flatMap(([index, value]) => {
    const name = `kms:RecipientAttestation:PCR${index}`;
    const hex = value.toString('hex');
    return [[name, hex] as const, ...(index === 0 ? [['kms:RecipientAttestation:ImageSha384', hex] as const] : [])];
  });
}
