// Messages that come bare or as `{version, data}`. Which shape is meant is decided before anything is parsed: a body
// that fits one shape badly is never taken for another.

import { z } from 'zod';
import { anyStatedFork, isForkName, type StatedFork } from '../forks.ts';
import { delegate, inputJsonSchema, refuse, upperCaseWord } from '../primitives.ts';

export function oneShape<T extends readonly [z.ZodType, ...z.ZodType[]]>(
  shapes: T,
  choose: (members: Readonly<Record<string, unknown>>) => T[number] | string,
) {
  return z
    .unknown()
    .transform((value, context): z.output<T[number]> => {
      if (typeof value !== 'object' || value === null) return refuse(context, value, 'expected an object');
      const shape = choose(value as Record<string, unknown>);
      if (typeof shape === 'string') return refuse(context, value, shape);
      const message = delegate(shape, value, context);
      if (context.issues.length > 0 && statesUnknownFork(value)) {
        // A fork that we do not know explains whatever else does not fit, so it is told.
        const reason = { params: { reason: 'unsupported_fork' }, path: ['version'] };
        context.issues.push({ code: 'custom', message: 'no fork known here', input: value, ...reason });
      }
      return message;
    })
    .meta(inputJsonSchema(z.union(shapes)));
}

function statesUnknownFork(value: object): boolean {
  const stated = 'version' in value ? upperCaseWord(value.version)?.toLowerCase() : undefined;
  return stated !== undefined && !isForkName(stated);
}

export type Stated<Message> = Message & { readonly version?: StatedFork | undefined };

/** @param marker a member of the bare message that the versioned one does not have */
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
