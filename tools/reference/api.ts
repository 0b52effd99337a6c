// docs/reference/api.md: the routes for people, from the same descriptions that the OpenAPI document is made of.

import assert from 'node:assert/strict';
import { OPENAPI_OPERATIONS } from '../../service/openapi/document.ts';
import type { Scope } from '../../signer/api/operations.ts';
import { SCOPE_CATALOGUE } from '../../signer/api/scope-catalogue.ts';
import { capitalised, codes } from './markdown.ts';

interface Described {
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly body?: JsonSchema;
  readonly querystring?: JsonSchema;
  readonly response?: Readonly<Record<string, { readonly description?: string; readonly content?: object }>>;
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly oneOf?: readonly { readonly title?: string }[];
}

const USUAL = '200 (`application/json`)';

export function apiReference(): string {
  const byTag = Map.groupBy(
    Object.entries(OPENAPI_OPERATIONS),
    ([, operation]) => (operation as Described).tags?.[0] ?? 'other',
  );
  for (const [tag, routes] of byTag) {
    for (const [, operation] of routes) {
      const { response = {} } = operation as Described;
      const refuses = CREDENTIAL_REFUSALS.every((status) => Object.hasOwn(response, status));
      assert(refuses !== WITHOUT_CREDENTIALS.includes(tag), 'the head says which routes ask for credentials');
    }
  }
  const described = new Set(Object.keys(OPENAPI_OPERATIONS).map(spelled));
  for (const route of Object.values(SCOPE_CATALOGUE).flatMap(({ routes }) => routes))
    assert(described.has(route), `${route} of a scope has no description`);
  const sections = [...byTag].map(([tag, routes]) => {
    const lines = routes.map(([route, operation]) => entry(spelled(route), operation as Described));
    return `## ${capitalised(tag)}\n\n${lines.join('\n\n')}\n`;
  });
  return `# HTTP API

Generated from the source by \`make docs\`, as \`GET /api/openapi.json\` is, which has the types of all members. How to
call it, with curl and Python: [guide](../guides/api.md). Every refusal has the form of [errors.md](errors.md). An
answer is ${USUAL} where nothing else is said. Every route but those of ${WITHOUT_CREDENTIALS.join(' and ')} also
refuses with ${CREDENTIAL_REFUSALS.map(statusLink).join(' and ')}.

${sections.join('\n')}`;
}

/** Parameters as the scopes' lists spell them. */
function spelled(route: string): string {
  return route.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{*}');
}

/** A refusal of every route but those of these tags stands once, in the head. */
const CREDENTIAL_REFUSALS = ['401', '403'];
const WITHOUT_CREDENTIALS = ['health', 'attestation'];

function entry(route: string, { summary = '', body, querystring, response = {} }: Described): string {
  const scopes = (Object.keys(SCOPE_CATALOGUE) as Scope[]).filter((scope) =>
    SCOPE_CATALOGUE[scope].routes.includes(route),
  );
  const [good, refused] = [answers(response, true), answers(response, false)];
  const lines = [
    ...(scopes.length === 0 ? [] : [`- Scope: ${codes(scopes, ' or ')}`]),
    ...members('Query', querystring),
    ...members('Body', body),
    ...(good.join() === USUAL ? [] : [`- Answers: ${good.join(', ')}`]),
    ...(refused.length === 0 ? [] : [`- Refusals: ${refused.join(', ')}`]),
  ];
  return [`### \`${route}\``, `${summary}.`, ...(lines.length === 0 ? [] : [lines.join('\n')])].join('\n\n');
}

function members(title: string, schema: JsonSchema | undefined): string[] {
  if (schema === undefined) return [];
  const types = schema.oneOf?.flatMap(({ title: type }) => type ?? []) ?? [];
  if (types.length > 0) return [`- ${title}: a message of one of the types ${codes(types)}`];
  const names = Object.keys(schema.properties ?? {});
  const required = new Set(schema.required);
  const listed = names.map((name) => `\`${name}\`${required.has(name) ? '' : ' (optional)'}`);
  return names.length === 0 ? [] : [`- ${title}: ${listed.join(', ')}`];
}

/** A success with what it is written in; a refusal by its status, whose reasons docs/reference/errors.md has. */
function answers(response: NonNullable<Described['response']>, isSuccess: boolean): string[] {
  return Object.entries(response)
    .filter(([status]) => status.startsWith('2') === isSuccess && !CREDENTIAL_REFUSALS.includes(status))
    .map(([status, { content = {} }]) => {
      const types = Object.keys(content);
      if (!isSuccess) return statusLink(status);
      return types.length === 0 ? status : `${status} (${codes(types, ' or ')})`;
    });
}

function statusLink(status: string): string {
  return `[${status}](errors.md#${status})`;
}
