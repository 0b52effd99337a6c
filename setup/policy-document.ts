// The form of the policies that AWS takes (IAM User Guide, JSON policy elements), as far as our documents use it, and
// how one is written down. A document is plain data: who asks for one, and by which program, is told elsewhere.

/** By operator, then by condition key. All of them have to hold. */
type PolicyCondition = Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;

export interface PolicyStatement {
  readonly Sid: string;
  readonly Effect: 'Allow' | 'Deny';
  /** In the policy of a key or a table; a role's policy has none. */
  readonly Principal?: '*' | { readonly AWS: string | readonly string[] };
  readonly Action: readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: PolicyCondition;
}

export interface PolicyDocument {
  readonly Version: '2012-10-17';
  readonly Statement: readonly PolicyStatement[];
}

export function policyOf(statements: readonly PolicyStatement[]): PolicyDocument {
  return { Version: '2012-10-17', Statement: statements };
}

export function renderPolicy(document: PolicyDocument): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** As AWS counts a policy: without white space. */
export function policyBytes(document: PolicyDocument): number {
  return Buffer.byteLength(JSON.stringify(document), 'utf8');
}

/** The states of a deployment's life that ask for other permissions. */
export const PHASES = ['running', 'first-boot', 'rotation'] as const;
export type Phase = (typeof PHASES)[number];
