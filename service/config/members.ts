// Flags and the environment bring text; here it becomes the value that the file would hold, so that one schema judges
// every layer. A variable can also set a member of an object-valued option: those of a fixed shape, found in the
// option's schema. What is below a list has no name that a variable could carry; the list is JSON.

import { z } from 'zod';
import { isRecord } from '../../common/formats/is-record.ts';
import { parseStrictYaml } from '../../common/formats/yaml.ts';
import type { MemberSetting, Setting } from '../../signer/config/layers/layer.ts';
import { OPTION_PATHS, type OptionPath, optionAt } from '../../signer/config/options.ts';

export interface ObjectMember {
  readonly option: OptionPath;
  readonly within: readonly string[];
  readonly form: 'integer' | 'boolean' | 'text' | 'json';
}

export const MEMBERS: readonly ObjectMember[] = OPTION_PATHS.flatMap((option) => {
  const { kind } = optionAt(option);
  return kind.form === 'object' ? membersOf(kind.schema, option, []) : [];
});

/**
 * The value of a text, or undefined when an object is not well-formed JSON. Text that is no integer or boolean stays
 * text, which the schema then refuses: an empty text is never an integer, a boolean or a choice, but is an empty list.
 */
export function readOptionText(path: OptionPath, text: string): { readonly value: unknown } | undefined {
  switch (optionAt(path).kind.form) {
    case 'text':
      return { value: text };
    case 'integer':
      return { value: /^-?[0-9]{1,15}$/.test(text) ? Number(text) : text };
    case 'boolean':
      return { value: text === 'true' ? true : text === 'false' ? false : text };
    case 'list':
    case 'repeated':
      return { value: text.trim() === '' ? [] : text.split(',').map((item) => item.trim()) };
    case 'object':
      return readObject(text);
  }
}

/** JSON is YAML 1.2, and the strict reader refuses what JSON.parse lets pass: repeated keys. */
function readObject(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  const document = parseStrictYaml(text);
  return 'problems' in document ? undefined : { value: document.value };
}

/**
 * As `readOptionText` reads options: what is no integer or boolean stays text, which the schema refuses. Undefined: not
 * well-formed JSON.
 */
export function readMember({ form }: ObjectMember, text: string): { readonly value: unknown } | undefined {
  switch (form) {
    case 'integer':
      return { value: /^-?[0-9]{1,15}$/.test(text) ? Number(text) : text };
    case 'boolean':
      return { value: text === 'true' ? true : text === 'false' ? false : text };
    case 'text':
      return { value: text };
    case 'json':
      return readObject(text);
  }
}

/** The setting of one member, as a layer has it. */
export function memberSetting({ option, within }: ObjectMember, { value, originAt }: Setting): MemberSetting {
  const isThere = (path: readonly PropertyKey[]) => within.every((name, index) => path[index] === name);
  return {
    option,
    over: (base) => ({
      value: withMember(base?.value, within, value),
      originAt: (path) => (base === undefined || isThere(path) ? originAt(path) : base.originAt(path)),
    }),
  };
}

/** The value with the member set. A value that is no object stays as it is, for the schema to refuse. */
function withMember(value: unknown, within: readonly string[], member: unknown): unknown {
  const [name, ...rest] = within;
  if (name === undefined) return member;
  if (value !== undefined && !isRecord(value)) return value;
  const inner = value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
  return { ...value, [name]: withMember(inner, rest, member) };
}

function membersOf(schema: z.core.$ZodType, option: OptionPath, within: readonly string[]): ObjectMember[] {
  const shape = unwrapped(schema);
  if (!(shape instanceof z.ZodObject)) return [];
  return Object.entries(shape.shape).flatMap(([name, member]) => {
    const inside = unwrapped(member);
    const path = [...within, name];
    return [
      ...(inside instanceof z.ZodObject ? membersOf(inside, option, path) : []),
      { option, within: path, form: formOf(inside) },
    ];
  });
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  let inner: z.core.$ZodType = schema;
  while ('innerType' in inner._zod.def) inner = inner._zod.def.innerType as z.core.$ZodType;
  return inner;
}

function formOf(schema: z.core.$ZodType): ObjectMember['form'] {
  if (schema instanceof z.ZodNumber) return 'integer';
  if (schema instanceof z.ZodBoolean) return 'boolean';
  return schema instanceof z.ZodString || schema instanceof z.ZodEnum ? 'text' : 'json';
}
