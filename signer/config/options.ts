// The option table: the one source of names, defaults, flags, variables, validation, help and reference
// (specification/operating.md#configuration).

import type { Option, ValueOf } from './option.ts';
import { ENCLAVE_OPTIONS } from './options/enclave.ts';
import { KEY_ROUTE_OPTIONS, KEY_SOURCE_OPTIONS } from './options/key-sources.ts';
import { NETWORK_OPTIONS } from './options/network.ts';
import { ACCESS_OPTIONS, SERVER_OPTIONS, TELEMETRY_OPTIONS, TLS_OPTIONS } from './options/server.ts';
import { ANTI_SLASHING_OPTIONS, RECEIPT_OPTIONS, SIGNING_OPTIONS } from './options/signing.ts';

export const OPTIONS = {
  ...SERVER_OPTIONS,
  ...NETWORK_OPTIONS,
  ...KEY_SOURCE_OPTIONS,
  ...SIGNING_OPTIONS,
  ...ANTI_SLASHING_OPTIONS,
  ...RECEIPT_OPTIONS,
  ...KEY_ROUTE_OPTIONS,
  ...ACCESS_OPTIONS,
  ...TLS_OPTIONS,
  ...ENCLAVE_OPTIONS,
  ...TELEMETRY_OPTIONS,
} as const satisfies Record<string, Option>;

export type OptionPath = keyof typeof OPTIONS;
export type SectionPath = SectionOf<OptionPath>;
/** The parsed configuration, deeply frozen. An option without a value is undefined. */
export type Config = Nested<{ [Path in OptionPath]: ValueOf<(typeof OPTIONS)[Path]> }>;

export const OPTION_PATHS = Object.keys(OPTIONS) as readonly OptionPath[];
export const SECTION_PATHS: ReadonlySet<string> = new Set(OPTION_PATHS.flatMap(sectionsOf));

/** An option that is a section too (`network`) has its own value under this name in the section. */
export const OWN_MEMBER = 'name';

/** `network` may be written as `network.name`, so that `network.fork_schedule` can stand with it. */
export function optionWrittenAt(path: string): OptionPath | undefined {
  if (isOptionPath(path)) return path;
  const section = path.endsWith(`.${OWN_MEMBER}`) ? path.slice(0, -OWN_MEMBER.length - 1) : '';
  return isOptionPath(section) && SECTION_PATHS.has(section) ? section : undefined;
}

export function optionAt(path: OptionPath): Option {
  return OPTIONS[path];
}

function isOptionPath(path: string): path is OptionPath {
  return Object.hasOwn(OPTIONS, path);
}

type Head<Path> = Path extends `${infer First}.${string}` ? First : Path;
type SectionOf<Path> = Path extends `${infer First}.${infer Rest}` ? First | `${First}.${SectionOf<Rest>}` : never;
type Nested<Flat> = {
  readonly [First in Head<keyof Flat> & string]: First extends keyof Flat
    ? keyof Inside<Flat, First> extends never
      ? Flat[First]
      : { readonly [Name in typeof OWN_MEMBER]: Flat[First] } & Nested<Inside<Flat, First>>
    : Nested<Inside<Flat, First>>;
};
type Inside<Flat, First extends string> = {
  [Path in keyof Flat as Path extends `${First}.${infer Rest}` ? Rest : never]: Flat[Path];
};

function sectionsOf(path: OptionPath): string[] {
  const names = path.split('.').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('.'));
}
