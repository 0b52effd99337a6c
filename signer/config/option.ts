// What a row of the option table holds, and the type its value has in the parsed configuration.

import type { Policy } from '../api/policy.ts';
import type { Cidr } from '../auth/cidr.ts';
import type { Secret } from './values/secret.ts';
import type { Kind } from './values/values.ts';

export interface Option<Value = unknown> {
  readonly kind: Kind<Value>;
  readonly default: Value | undefined;
  /** `regular` is `--` and the path with dashes; an irregular flag is spelled out; `none` means there is no flag. */
  readonly flag: 'regular' | 'none' | `--${string}`;
  readonly meaning: string;
}

/** The type of an option's value: frozen, and undefined only where the row has no default. */
export type ValueOf<Row> = Row extends { readonly kind: Kind<infer Value>; readonly default: infer Default }
  ? Frozen<undefined extends Default ? Value | undefined : Value>
  : never;

interface Row<Value, Default> {
  readonly kind: Kind<Value>;
  readonly default: Default;
  readonly flag: Option['flag'];
  readonly meaning: string;
}

export function flagged<Value>(
  kind: Kind<Value>,
  fallback: NoInfer<Value>,
  meaning: string,
  flag?: Option['flag'],
): Row<Value, Value>;
export function flagged<Value>(
  kind: Kind<Value>,
  fallback: undefined,
  meaning: string,
  flag?: Option['flag'],
): Row<Value, undefined>;
export function flagged<Value>(
  kind: Kind<Value>,
  fallback: Value | undefined,
  meaning: string,
  flag: Option['flag'] = 'regular',
): Row<Value, Value | undefined> {
  return { kind, default: fallback, flag, meaning };
}

export function unflagged<Value>(kind: Kind<Value>, fallback: NoInfer<Value>, meaning: string): Row<Value, Value>;
export function unflagged<Value>(kind: Kind<Value>, fallback: undefined, meaning: string): Row<Value, undefined>;
export function unflagged<Value>(
  kind: Kind<Value>,
  fallback: Value | undefined,
  meaning: string,
): Row<Value, Value | undefined> {
  return { kind, default: fallback, flag: 'none', meaning };
}

/** Policies and ranges keep the types their own modules work with; they are frozen all the same. */
type Frozen<Value> = Value extends Secret | Policy | Cidr | string | number | boolean | null | undefined
  ? Value
  : Value extends readonly (infer Item)[]
    ? readonly Frozen<Item>[]
    : { readonly [Member in keyof Value]: Frozen<Value[Member]> };
