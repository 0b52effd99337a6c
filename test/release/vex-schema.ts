// OpenVEX v0.2.0 as its JSON schema says it, as far as our documents go; every member that is not named is refused.

import { z } from 'zod';

const unique = (list: readonly unknown[]): boolean =>
  new Set(list.map((one) => JSON.stringify(one))).size === list.length;
const component = z.strictObject({ '@id': z.string().regex(/^pkg:/) });

const statement = z.strictObject({
  vulnerability: z.strictObject({ name: z.string() }),
  timestamp: z.iso.datetime(),
  products: z
    .array(component.extend({ subcomponents: z.array(component).min(1).refine(unique) }))
    .min(1)
    .refine(unique),
  status: z.literal('not_affected'),
  status_notes: z.string(),
  /** In place of an `impact_statement`: the schema takes one of the two. */
  justification: z.enum([
    'component_not_present',
    'vulnerable_code_not_present',
    'vulnerable_code_not_in_execute_path',
    'vulnerable_code_cannot_be_controlled_by_adversary',
    'inline_mitigations_already_exist',
  ]),
});

export const vexSchema = z.strictObject({
  '@context': z.url(),
  '@id': z.string().regex(/^urn:uuid:/),
  author: z.string(),
  timestamp: z.iso.datetime(),
  version: z.int().min(1),
  statements: z.array(statement).min(1).refine(unique),
});
