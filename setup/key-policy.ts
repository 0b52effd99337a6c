// The policy of a custody key. The signer's roles decrypt for the listed images only. Administrators and the root user
// of the account can change the policy, so that the account is not locked out of it, and none of them decrypts. It
// refuses what would let an administrator open the master key alone.

import type { Deployment } from '../ceremony/definition.ts';
import { type Phase, type PolicyDocument, type PolicyStatement, policyBytes, policyOf } from './policy-document.ts';
import { type AwsPrincipal, parsePrincipal } from './principal.ts';

/** The registers that an image has to show, each one of these values. */
export interface AttestedImage {
  readonly imageSha384: readonly string[];
  readonly pcr16: readonly string[];
  readonly pcr17: readonly string[];
}

export interface KeyPolicyRequest {
  /** Principals of the key's own account: KMS lets no other account change a key's policy. */
  readonly administrators: readonly string[];
  /** The roles that decrypt: that of a plain service, or those of the parents. */
  readonly signers: readonly string[];
  /**
   * They encrypt shares in the phases that make some. `the signers`: for a plain service, and where the parents write
   * the tables.
   */
  readonly tableUsers: readonly string[] | 'the signers';
  /** `without attestation`: any holder of the signers' role decrypts. For a service that runs in no enclave. */
  readonly images: readonly AttestedImage[] | 'without attestation';
  readonly phase: Phase;
  readonly deployment: Deployment;
  readonly sealers: readonly string[];
}

/** KMS Developer Guide, Quotas. */
export const MAX_KEY_POLICY_BYTES = 32_768;

export class KeyPolicyRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'KeyPolicyRefused';
  }
}

export function keyPolicy(request: KeyPolicyRequest): PolicyDocument {
  checkPrincipals(request);
  if (request.images !== 'without attestation' && request.images.length === 0) {
    throw new KeyPolicyRefused('no image is named: no enclave could open its share');
  }
  const document = policyOf(keyPolicyStatements(request).map(({ statement }) => statement));
  const bytes = policyBytes(document);
  if (bytes > MAX_KEY_POLICY_BYTES) {
    throw new KeyPolicyRefused(
      `the policy has ${bytes} bytes, and KMS takes ${MAX_KEY_POLICY_BYTES}: name fewer images (old ones are to be taken out after a roll-out)`,
    );
  }
  return document;
}

/** A statement, and on what it depends: a template asks the same questions (tools/reference/policy-templates.ts). */
export interface KeyPolicyStatement {
  readonly kind: 'always' | 'encrypt' | 'image' | 'sealers' | 'sealed';
  readonly statement: PolicyStatement;
}

/** @param account of the key: `arn:PARTITION:iam::ACCOUNT:root`; the administrators' unless given */
export function keyPolicyStatements(
  request: KeyPolicyRequest,
  account: string = accountOf(request.administrators[0] ?? ''),
): readonly KeyPolicyStatement[] {
  const { administrators, signers, tableUsers, images, phase, deployment, sealers } = request;
  const encrypting = tableUsers === 'the signers' ? signers : tableUsers;
  const always = (statement: PolicyStatement): KeyPolicyStatement => ({ kind: 'always', statement });
  const isAttested = images !== 'without attestation';
  const decrypts = isAttested ? imagesDecrypt(images, signers, deployment) : serviceDecrypts(signers, deployment);
  return [
    always({ Sid: 'Administrators', ...ADMINISTRATION, Principal: { AWS: administrators } }),
    // The root user alone: the account's other principals administer nothing, whatever IAM allows them.
    always({
      Sid: 'AccountIfTheyAreGone',
      ...ADMINISTRATION,
      Principal: { AWS: account },
      Condition: { ArnEquals: { 'aws:PrincipalArn': account } },
    }),
    ...(phase === 'running' ? [] : [{ kind: 'encrypt' as const, statement: sharesEncrypted(encrypting, deployment) }]),
    ...decrypts.map((statement): KeyPolicyStatement => ({ kind: isAttested ? 'image' : 'always', statement })),
    ...(sealers.length === 0 ? [] : [{ kind: 'sealers' as const, statement: credentialsEncrypted(sealers) }]),
    always({ Sid: 'Health', ...ALLOWED, Principal: { AWS: signers }, Action: ['kms:DescribeKey'] }),
    always({ ...SIGNERS_ADMINISTER_NOTHING, Principal: { AWS: signers } }),
    ...(tableUsers === 'the signers' ? [] : [{ kind: 'sealed' as const, statement: parentsEncryptNothing(signers) }]),
    ...(isAttested ? [always(NOT_UNATTESTED)] : []),
    always(NO_WAY_AROUND),
  ];
}

function accountOf(principal: string): string {
  const { partition, account } = principalOf(principal);
  return `arn:${partition}:iam::${account}:root`;
}

const ALLOWED = { Effect: 'Allow', Resource: '*' } as const;
const DENIED = { Effect: 'Deny', Principal: '*', Resource: '*' } as const;

/** Never Decrypt, Encrypt, CreateGrant, ReEncrypt: who may change the policy opens nothing by that alone. */
export const ADMINISTRATION_ACTIONS: readonly string[] = [
  'kms:DescribeKey',
  'kms:GetKeyPolicy',
  'kms:ListKeyPolicies',
  'kms:PutKeyPolicy',
  'kms:EnableKey',
  'kms:DisableKey',
  'kms:ScheduleKeyDeletion',
  'kms:CancelKeyDeletion',
  'kms:UpdateKeyDescription',
  'kms:ReplicateKey',
  'kms:UpdatePrimaryRegion',
  'kms:GetKeyRotationStatus',
  'kms:EnableKeyRotation',
  'kms:DisableKeyRotation',
  'kms:TagResource',
  'kms:UntagResource',
  'kms:ListResourceTags',
  'kms:ListGrants',
  'kms:RevokeGrant',
];

const ADMINISTRATION = { ...ALLOWED, Action: ADMINISTRATION_ACTIONS } as const;

/** The account's own policies could allow it to a role that calls the key: it is denied whatever they say. */
const SIGNERS_ADMINISTER_NOTHING = {
  Sid: 'SignersAdministerNothing',
  ...DENIED,
  Action: ADMINISTRATION_ACTIONS.filter((action) => action !== 'kms:DescribeKey'),
} as const;

/**
 * An explicit deny wins over every allow: over an older grant, and over a statement that an administrator adds later.
 */
const NOT_UNATTESTED: PolicyStatement = {
  Sid: 'NobodyWithoutAttestation',
  ...DENIED,
  Action: ['kms:Decrypt'],
  Condition: { Null: { 'kms:RecipientAttestation:ImageSha384': 'true' } },
};

/** A grant would allow what this policy does not; ReEncrypt gives a share to another key, and takes no attestation. */
const NO_WAY_AROUND: PolicyStatement = {
  Sid: 'NoWayAround',
  ...DENIED,
  Action: ['kms:CreateGrant', 'kms:ReEncryptFrom', 'kms:ReEncryptTo'],
};

function sharesContext({ network, id }: Deployment) {
  return {
    'kms:EncryptionContext:service': 'strongroom',
    'kms:EncryptionContext:network': network,
    'kms:EncryptionContext:deployment': id,
  };
}

const CREDENTIALS_CONTEXT = {
  'kms:EncryptionContext:service': 'strongroom',
  'kms:EncryptionContext:purpose': 'table-credentials',
};

/** The shares of this deployment, and credentials for the tables. */
function imagesDecrypt(
  images: readonly AttestedImage[],
  signers: readonly string[],
  deployment: Deployment,
): readonly PolicyStatement[] {
  const named = images.map((image, at) => [image, `Image${at + 1}`] as const);
  return [
    ...named.map(([image, name]) => imageDecrypts(image, `${name}Decrypts`, signers, sharesContext(deployment))),
    ...named.map(([image, name]) => imageDecrypts(image, `CredentialsOf${name}`, signers, CREDENTIALS_CONTEXT)),
  ];
}

function imageDecrypts(
  { imageSha384, pcr16, pcr17 }: AttestedImage,
  sid: string,
  signers: readonly string[],
  context: Readonly<Record<string, string>>,
): PolicyStatement {
  return {
    Sid: sid,
    ...ALLOWED,
    Principal: { AWS: signers },
    Action: ['kms:Decrypt'],
    Condition: {
      StringEqualsIgnoreCase: {
        'kms:RecipientAttestation:ImageSha384': imageSha384,
        'kms:RecipientAttestation:PCR16': pcr16,
        'kms:RecipientAttestation:PCR17': pcr17,
      },
      StringEquals: context,
    },
  };
}

function serviceDecrypts(signers: readonly string[], deployment: Deployment): readonly PolicyStatement[] {
  const decrypts = { ...ALLOWED, Principal: { AWS: signers }, Action: ['kms:Decrypt'] };
  return [
    { Sid: 'SignerDecrypts', ...decrypts, Condition: { StringEquals: sharesContext(deployment) } },
    { Sid: 'SignerOpensCredentials', ...decrypts, Condition: { StringEquals: CREDENTIALS_CONTEXT } },
  ];
}

function sharesEncrypted(signers: readonly string[], deployment: Deployment): PolicyStatement {
  return {
    Sid: 'SharesForThisPhase',
    ...ALLOWED,
    Principal: { AWS: signers },
    Action: ['kms:Encrypt'],
    Condition: { StringEquals: sharesContext(deployment) },
  };
}

/** A parent that encrypts could write a master key of its own. An explicit deny wins over every allow. */
function parentsEncryptNothing(signers: readonly string[]): PolicyStatement {
  return {
    Sid: 'ParentsEncryptNothing',
    Effect: 'Deny',
    Principal: { AWS: signers },
    Action: ['kms:Encrypt', 'kms:GenerateDataKey*'],
    Resource: '*',
  };
}

function credentialsEncrypted(sealers: readonly string[]): PolicyStatement {
  return {
    Sid: 'TableCredentialsSealed',
    ...ALLOWED,
    Principal: { AWS: sealers },
    Action: ['kms:Encrypt'],
    Condition: { StringEquals: CREDENTIALS_CONTEXT },
  };
}

function checkPrincipals({ administrators, signers, tableUsers, sealers, phase }: KeyPolicyRequest): void {
  if (administrators.length === 0)
    throw new KeyPolicyRefused('no administrator is named: the key could be changed by nobody');
  if (signers.length === 0) throw new KeyPolicyRefused('no signer is named: nobody could call the key');
  const [first = ''] = administrators;
  for (const administrator of administrators) {
    if (accountOf(administrator) !== accountOf(first)) {
      throw new KeyPolicyRefused(
        `${administrator} is of another account than ${first}: only principals of the key's own account administer it`,
      );
    }
    if (signers.includes(administrator)) {
      throw new KeyPolicyRefused(
        `${administrator} administers the key and calls it: whoever holds it could open the master key; name another`,
      );
    }
  }
  const users = tableUsers === 'the signers' ? [] : tableUsers;
  if (tableUsers !== 'the signers' && users.length === 0 && phase !== 'running') {
    throw new KeyPolicyRefused(
      'no table user is named: nobody could encrypt a share; name the user whose credentials are sealed for the enclaves',
    );
  }
  for (const principal of [...signers, ...users, ...sealers]) principalOf(principal);
  for (const one of [...users, ...sealers]) {
    if (tableUsers !== 'the signers' && signers.includes(one)) {
      throw new KeyPolicyRefused(
        `${one} is a parent's role, and encrypts nothing: whoever holds a parent could write a master key; name another`,
      );
    }
    if (users.includes(one) && administrators.includes(one)) {
      throw new KeyPolicyRefused(`${one} administers the key, and its credentials are sealed: name another`);
    }
  }
}

function principalOf(text: string): AwsPrincipal {
  const principal = parsePrincipal(text);
  if (principal !== undefined) return principal;
  throw new KeyPolicyRefused(
    `${text} is not the ARN of a role or a user, arn:aws:iam::ACCOUNT:role/NAME (of a session, name its role)`,
  );
}
