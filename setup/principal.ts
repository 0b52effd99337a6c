// The ARN of a principal that a policy names: a role or a user of one account. It refuses an account's root, which is
// all of its IAM, a session, which ends, and wildcards.

export interface AwsPrincipal {
  readonly partition: string;
  readonly account: string;
}

/** IAM User Guide, IAM identifiers: names of 64 characters behind a path of 512. */
const PRINCIPAL = /^arn:(aws(?:-[a-z]+)*):iam::(\d{12}):(?:role|user)\/[A-Za-z0-9+=,.@_/-]{1,575}$/;

export function parsePrincipal(text: string): AwsPrincipal | undefined {
  const [, partition, account] = PRINCIPAL.exec(text) ?? [];
  return partition === undefined || account === undefined ? undefined : { partition, account };
}
