// What a row of the option table holds, and the type its value has in the parsed configuration.

import type { Policy } from '../api/policy.ts';
import type { Cidr } from '../auth/cidr.ts';
import type { Secret } from './values/secret.ts';
import type { Kind } from './values/values.ts';

export interface Option<Value = unknown> {
  readonly kind: Kind<Value>;
  readonly default: Value | undefined;
  /** `regular` is `--` and the path with dashes. */
  readonly flag: 'regular' | 'none' | `--${string}`;
  readonly meaning: string;
}

export type ValueOf<Row> = Row extends { readonly kind: Kind<infer Value>; readonly default: infer Default }
  ? Frozen<undefined extends Default ? Value | undefined : Value>
  : never;

interface Row<Value, Default> {
  readonly kind: Kind<Value>;
  readonly default: Default;
  readonly flag: Option['flag'];
  readonly meaning: string;
}

export function flagged<Value, Default extends NoInfer<Value> | undefined>(
  kind: Kind<Value>,
  fallback: Default,
  meaning: string,
  flag: Option['flag'] = 'regular',
): Row<Value, Default> {
  return { kind, default: fallback, flag, meaning };
}

export function unflagged<Value, Default extends NoInfer<Value> | undefined>(
  kind: Kind<Value>,
  fallback: Default,
  meaning: string,
): Row<Value, Default> {
  return flagged(kind, fallback, meaning, 'none');
}

type Frozen<Value> = Value extends Secret | Policy | Cidr | string | number | boolean | null | undefined
  ? Value
  : Value extends readonly (infer Item)[]
    ? readonly Frozen<Item>[]
    : { readonly [Member in keyof Value]: Frozen<Value[Member]> };
