// Messages that come in more than one shape: bare, or as `{version, data}`; and schemas of which a body fits exactly
// one. Which shape is meant is decided before anything is parsed: a refusal then names the place in that shape, and a
// body that fits one shape badly is never taken for another.

import { z } from 'zod';
import { anyStatedFork, type ForkName } from '../forks.ts';
import { delegate, inputJsonSchema, refuse } from '../primitives.ts';

/** One of several shapes. `choose` says which is meant, or why none can be. */
export function oneShape<T extends readonly [z.ZodType, ...z.ZodType[]]>(
  shapes: T,
  choose: (members: Readonly<Record<string, unknown>>) => T[number] | string,
) {
  return z
    .unknown()
    .transform((value, context): z.output<T[number]> => {
      if (typeof value !== 'object' || value === null) return refuse(context, value, 'expected an object');
      const shape = choose(value as Record<string, unknown>);
      return typeof shape === 'string' ? refuse(context, value, shape) : delegate(shape, value, context);
    })
    .meta(inputJsonSchema(z.union(shapes)));
}

export type Stated<Message> = Message & { readonly version?: ForkName | undefined };

/**
 * `{version, data: {…}}`, or the message bare, with or without a `version` beside its members.
 * @param marker a member of the bare message that the versioned one does not have
 */
export function bareOrVersioned<Fields extends z.ZodRawShape>(fields: Fields, marker: string) {
  type Message = Stated<z.output<z.ZodObject<Fields>>>;
  const version = anyStatedFork.nullish().transform((stated) => stated ?? undefined);
  const bare = z.object({ ...fields, version }) as unknown as z.ZodType<Message>;
  const versioned = z
    .object({ version: anyStatedFork, data: bare })
    .transform(
      ({ version, data }, context): Message =>
        data.version === undefined || data.version === version
          ? { ...data, version }
          : refuse(context, undefined, 'version is given twice and differs'),
    );
  return oneShape([versioned, bare], ({ data, ...others }) => {
    // A message may have a member `data` of its own (builder_request_auth), which is text.
    if (typeof data !== 'object' || data === null) return marker in others || data === undefined ? bare : versioned;
    return marker in others ? `carries both data and ${marker}` : versioned;
  });
}
