// The policy of a custody key. It lets the signer's roles decrypt for the images that are listed, each with its own
// configuration and ceremony, and nobody else for anything. The key's administrators can always change it, and so can
// its account when the roles that it names are gone: nobody is locked out of the key, and nobody who administers it
// decrypts. It refuses, before AWS is asked, what would let an administrator open the master key alone.

import type { Deployment } from '../ceremony/deployment.ts';
import { type Phase, type PolicyDocument, policyBytes, policyOf, type Statement } from './policy-document.ts';
import { type AwsPrincipal, parsePrincipal } from './principal.ts';

/** The registers that an image has to show, each one of these values. */
export interface AttestedImage {
  /** PCR0, which KMS calls ImageSha384. */
  readonly imageSha384: readonly string[];
  /** The configuration. */
  readonly pcr16: readonly string[];
  /** The ceremony. */
  readonly pcr17: readonly string[];
}

export interface KeyPolicyRequest {
  /** Principals of the key's own account: KMS lets no other account change a key's policy. */
  readonly administrators: readonly string[];
  /** Whoever calls KMS: the role of a plain service, or those of the parents. */
  readonly signers: readonly string[];
  /** `without attestation`: whoever has the signers' role decrypts. For a service that runs in no enclave. */
  readonly images: readonly AttestedImage[] | 'without attestation';
  readonly phase: Phase;
  /** Whose shares the key wraps. */
  readonly deployment: Deployment;
  /** Who may encrypt table credentials for the enclaves, and nothing else. */
  readonly sealers: readonly string[];
}

/** KMS Developer Guide, Quotas. */
export const MAX_KEY_POLICY_BYTES = 32_768;

/** A policy that would lock somebody out, let somebody in, or that KMS would not take. */
export class KeyPolicyRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'KeyPolicyRefused';
  }
}

/** @throws KeyPolicyRefused */
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

/** A statement, and on what it depends: a template asks the same questions (terraform.ts). */
export interface KeyPolicyStatement {
  readonly kind: 'always' | 'encrypt' | 'image' | 'sealers';
  readonly statement: Statement;
}

/** @param account of the key: `arn:PARTITION:iam::ACCOUNT:root`; the administrators' unless given */
export function keyPolicyStatements(
  request: KeyPolicyRequest,
  account: string = accountOf(request.administrators[0] ?? ''),
): readonly KeyPolicyStatement[] {
  const { administrators, signers, images, phase, deployment, sealers } = request;
  const always = (statement: Statement): KeyPolicyStatement => ({ kind: 'always', statement });
  const isAttested = images !== 'without attestation';
  const decrypts = isAttested
    ? images.map((image, at) => imageDecrypts(image, `${at + 1}`, signers, deployment))
    : [serviceDecrypts(signers, deployment)];
  return [
    always({ Sid: 'Administrators', ...ADMINISTRATION, Principal: { AWS: administrators } }),
    always({ Sid: 'AccountIfTheyAreGone', ...ADMINISTRATION, Principal: { AWS: account } }),
    ...(phase === 'running' ? [] : [{ kind: 'encrypt' as const, statement: sharesEncrypted(signers, deployment) }]),
    ...decrypts.map((statement): KeyPolicyStatement => ({ kind: isAttested ? 'image' : 'always', statement })),
    ...(sealers.length === 0 ? [] : [{ kind: 'sealers' as const, statement: credentialsEncrypted(sealers) }]),
    always({ Sid: 'Health', ...ALLOWED, Principal: { AWS: signers }, Action: ['kms:DescribeKey'] }),
    always({ ...SIGNERS_ADMINISTER_NOTHING, Principal: { AWS: signers } }),
    ...(isAttested ? [always(NOT_UNATTESTED)] : []),
    always(NO_WAY_AROUND),
  ];
}

/** `arn:aws:iam::111122223333:root` of any principal in the account. */
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

/** An explicit deny is above every allow: a grant of earlier times, or a statement that somebody adds later. */
const NOT_UNATTESTED: Statement = {
  Sid: 'NobodyWithoutAttestation',
  ...DENIED,
  Action: ['kms:Decrypt'],
  Condition: { Null: { 'kms:RecipientAttestation:ImageSha384': 'true' } },
};

/** A grant would decrypt beside this policy; ReEncrypt gives a share to another key, and takes no attestation. */
const NO_WAY_AROUND: Statement = {
  Sid: 'NoWayAround',
  ...DENIED,
  Action: ['kms:CreateGrant', 'kms:ReEncryptFrom', 'kms:ReEncryptTo'],
};

/** Shares of this deployment; table credentials and records of earlier versions name none. */
function ownContext({ network, id }: Deployment) {
  return {
    StringEquals: { 'kms:EncryptionContext:service': 'strongroom' },
    StringEqualsIfExists: { 'kms:EncryptionContext:network': network, 'kms:EncryptionContext:deployment': id },
  };
}

function imageDecrypts(
  { imageSha384, pcr16, pcr17 }: AttestedImage,
  number: string,
  signers: readonly string[],
  deployment: Deployment,
): Statement {
  return {
    Sid: `Image${number}Decrypts`,
    ...ALLOWED,
    Principal: { AWS: signers },
    Action: ['kms:Decrypt'],
    Condition: {
      StringEqualsIgnoreCase: {
        'kms:RecipientAttestation:ImageSha384': imageSha384,
        'kms:RecipientAttestation:PCR16': pcr16,
        'kms:RecipientAttestation:PCR17': pcr17,
      },
      ...ownContext(deployment),
    },
  };
}

function serviceDecrypts(signers: readonly string[], deployment: Deployment): Statement {
  return {
    Sid: 'SignerDecrypts',
    ...ALLOWED,
    Principal: { AWS: signers },
    Action: ['kms:Decrypt'],
    Condition: ownContext(deployment),
  };
}

function sharesEncrypted(signers: readonly string[], { network, id }: Deployment): Statement {
  return {
    Sid: 'SharesForThisPhase',
    ...ALLOWED,
    Principal: { AWS: signers },
    Action: ['kms:Encrypt'],
    Condition: {
      StringEquals: {
        'kms:EncryptionContext:service': 'strongroom',
        'kms:EncryptionContext:network': network,
        'kms:EncryptionContext:deployment': id,
      },
    },
  };
}

function credentialsEncrypted(sealers: readonly string[]): Statement {
  return {
    Sid: 'TableCredentialsSealed',
    ...ALLOWED,
    Principal: { AWS: sealers },
    Action: ['kms:Encrypt'],
    Condition: {
      StringEquals: {
        'kms:EncryptionContext:service': 'strongroom',
        'kms:EncryptionContext:purpose': 'table-credentials',
      },
    },
  };
}

function checkPrincipals({ administrators, signers, sealers }: KeyPolicyRequest): void {
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
  for (const principal of [...signers, ...sealers]) principalOf(principal);
}

function principalOf(text: string): AwsPrincipal {
  const principal = parsePrincipal(text);
  if (principal !== undefined) return principal;
  throw new KeyPolicyRefused(
    `${text} is not the ARN of a role or a user, arn:aws:iam::ACCOUNT:role/NAME (of a session, name its role)`,
  );
}
