// What AWS decides about a call under a set of policies (IAM User Guide, Policy evaluation logic), as far as our
// documents use the language: an explicit deny, else an allow, else no. Written apart from what makes the documents, so
// that a mistake in them is seen. It refuses an operator that it does not know.

import type { PolicyDocument, PolicyStatement } from '../../setup/policy-document.ts';

export interface JudgedCall {
  readonly action: string;
  readonly resource: string;
  /** Whoever calls; undefined for a role's own policy, which names nobody. */
  readonly principal?: string;
  /** By condition key, exactly as a policy would spell it. */
  readonly context?: Readonly<Record<string, string>>;
}

export function isAllowed(documents: readonly PolicyDocument[], call: JudgedCall): boolean {
  const fitting = documents.flatMap(({ Statement: statements }) => statements).filter((each) => fits(each, call));
  return fitting.some(({ Effect }) => Effect === 'Allow') && !fitting.some(({ Effect }) => Effect === 'Deny');
}

function fits(statement: PolicyStatement, call: JudgedCall): boolean {
  const { Action, Resource, Principal, Condition = {} } = statement;
  return (
    Action.some((pattern) => matches(pattern, call.action)) &&
    [Resource].flat().some((pattern) => matches(String(pattern), call.resource)) &&
    isFor(Principal, call.principal) &&
    Object.entries(Condition).every(([operator, keys]) =>
      Object.entries(keys).every(([key, wanted]) => holds(operator, contextOf(key, call), [wanted].flat() as string[])),
    )
  );
}

/** An account's root stands for every principal of the account that its own policies allow as much. */
function isFor(principal: PolicyStatement['Principal'], caller: string | undefined): boolean {
  if (principal === undefined) return caller === undefined;
  if (principal === '*') return true;
  if (caller === undefined) return false;
  const account = /::(\d{12}):/.exec(caller)?.[1];
  return [principal.AWS].flat().some((named) => named === caller || named === `arn:aws:iam::${account}:root`);
}

function holds(operator: string, value: string | undefined, wanted: readonly string[]): boolean {
  switch (operator) {
    case 'StringEquals':
    case 'ArnEquals': // without wildcards
      return value !== undefined && wanted.includes(value);
    case 'ForAllValues:StringEquals':
      return value === undefined || wanted.includes(value);
    case 'StringEqualsIgnoreCase':
      return value !== undefined && wanted.some((one) => one.toLowerCase() === value.toLowerCase());
    case 'Null':
      return wanted.includes(String(value === undefined));
    default:
      throw new Error(`a condition operator that nobody judges: ${operator}`);
  }
}

/** AWS says of every call who makes it. */
function contextOf(key: string, { context, principal }: JudgedCall): string | undefined {
  return key === 'aws:PrincipalArn' ? principal : context?.[key];
}

function matches(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : pattern === text;
}
