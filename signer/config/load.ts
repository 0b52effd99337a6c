// From layers to one frozen configuration, or to everything that is wrong with them. Only the value that takes effect
// is validated (specification/operating.md#configuration).

import type { Ceremony } from '../../ceremony/definition.ts';
import { renderPath, type Violation } from '../../common/command-line/violations.ts';
import { explainIssue } from '../../common/formats/issues.ts';
import type { AuthoritiesOf } from '../tee/authorities.ts';
import type { Layer, Setting } from './layers/layer.ts';
import {
  type Config,
  OPTION_PATHS,
  type OptionPath,
  OWN_MEMBER,
  optionAt,
  optionWrittenAt,
  SECTION_PATHS,
  type SectionPath,
} from './options.ts';
import { remedyFor } from './remedy.ts';
import type { ConfigFinding, ConfigRule, Facts } from './rules/rule.ts';
import {
  BrokenReference,
  type References,
  readSecret,
  Secret,
  type SecretSources,
  surrounded,
  wipeSecrets,
} from './values/secret.ts';
import { withSecrets } from './values/static-auth.ts';
import { type ConfigWarning, type WarningRule, warningsOf } from './warnings.ts';

interface ReadingParts {
  readonly rules: readonly ConfigRule[];
  readonly warnings: readonly WarningRule[];
  /** What `env:NAME` and `file:/PATH` lead to; undefined in an enclave. */
  readonly references: References | undefined;
  readonly compiledCeremony: Ceremony | false;
  readonly compiledAuthorities?: AuthoritiesOf | undefined;
  readonly withoutTokens: boolean;
  readonly runs: boolean;
  readonly onlyRead?: boolean;
  readonly allowUnsafeNoopAntiSlashing: boolean;
  /** What is wrong with variables that are no options. */
  readonly strayVariables?: (referenced: readonly string[]) => readonly Violation[];
}

export type ConfigurationRead =
  | {
      readonly ok: true;
      readonly config: Config;
      readonly origins: ReadonlyMap<OptionPath, string>;
      readonly warnings: readonly ConfigWarning[];
    }
  | { readonly ok: false; readonly violations: readonly Violation[] };

export function readLayers(layers: readonly Layer[], parts: ReadingParts): ConfigurationRead {
  const { compiledCeremony, compiledAuthorities, runs, onlyRead = false, allowUnsafeNoopAntiSlashing } = parts;
  const { settings, referenced } = resolveSettings(layers, parts.references, {
    isEnclaveBuild: compiledCeremony !== false,
    withoutTokens: parts.withoutTokens,
  });

  const violations = layers.flatMap((layer) => layer.violations);
  violations.push(...(parts.strayVariables?.(referenced) ?? []));
  const values = new Map<OptionPath, unknown>();
  const failed = new Set<string>(violations.map(({ path }) => path));
  for (const path of OPTION_PATHS) {
    const setting = settings.get(path);
    const parsed = setting === undefined ? { value: optionAt(path).default } : validate(path, setting);
    if ('violations' in parsed) {
      violations.push(...parsed.violations);
      failed.add(path);
    } else {
      values.set(path, parsed.value);
    }
  }

  const slips = new Set(violations.flatMap(({ path }) => (optionWrittenAt(path) === undefined ? sectionOf(path) : [])));
  for (const path of OPTION_PATHS) {
    // A mistyped name may have meant this option.
    const isMissing = !settings.has(path) && optionAt(path).default === undefined;
    if (isMissing && sectionOf(path).some((section) => slips.has(section))) failed.add(path);
  }
  const config = nest(values, failed);
  const isSet = (at: string): boolean =>
    layers.some(({ sections }) => sections.has(at)) ||
    [...settings.keys(), ...failed].some((path) => isWithin(path, at));
  const image = { compiledCeremony, compiledAuthorities };
  const facts: Facts = { isSet, ...image, runs, onlyRead, allowUnsafeNoopAntiSlashing };
  // Without the file, what the rules would miss may well be in it.
  if (!layers.some(({ unreadable }) => unreadable)) {
    for (const finding of parts.rules.flatMap((rule) => findings(rule, config, facts)))
      violations.push(locate(finding, settings, layers));
  }
  if (violations.length > 0) {
    for (const value of [...values.values(), ...[...settings.values()].map((setting) => setting.value)]) {
      wipeSecrets(value); // a reload goes on without what was read
    }
    return { ok: false, violations };
  }
  const origins = new Map(OPTION_PATHS.map((path) => [path, settings.get(path)?.originAt([]) ?? 'default']));
  return { ok: true, config: freeze(config), origins, warnings: warningsOf(parts.warnings, config, facts) };
}

function validate(
  path: OptionPath,
  setting: Setting,
): { readonly value: unknown } | { readonly violations: readonly Violation[] } {
  const { kind } = optionAt(path);
  const result = kind.schema.safeParse(setting.value, { error: explainIssue });
  if (result.success) return { value: result.data };
  return {
    violations: result.error.issues.flatMap((issue) => {
      const places = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
      return places.map((within) => ({
        path: renderPath([path, ...within]),
        problem: issue.code === 'unrecognized_keys' ? 'is not a member of this object' : sentence(issue.message),
        remedy: remedyFor(path, setting.value, { ...issue, path: within }),
        origin: setting.originAt(within),
      }));
    }),
  };
}

/** The API's schemas quote what they refuse; in a log it may be a pasted secret. */
function sentence(message: string): string {
  const shown = message.replaceAll(/"(?:[^"\\]|\\.)*"/g, '(not shown)');
  return /^(?:must|is|has|refers) /.test(shown) ? shown : `is refused: ${shown}`;
}

const REFUSED = new Error('a rule asks for a value that is refused already');

function findings(rule: ConfigRule, config: Config, facts: Facts): readonly ConfigFinding[] {
  try {
    return rule.broken(config, facts);
  } catch (error) {
    if (error === REFUSED) return [];
    throw error;
  }
}

function locate(
  { at, within = [], problem, remedy }: ConfigFinding,
  settings: ReadonlyMap<OptionPath, Setting>,
  layers: readonly Layer[],
): Violation {
  const [, setting] = [...settings].find(([path]) => isWithin(path, at)) ?? [];
  const section = layers.map(({ sections }) => sections.get(at)).find((origin) => origin !== undefined);
  const origin = section ?? setting?.originAt(within) ?? 'default';
  return { path: renderPath([at, ...within]), problem, remedy, origin };
}

/** None of what stands at the top. */
function sectionOf(path: string): readonly string[] {
  const end = path.lastIndexOf('.');
  return end === -1 ? [] : [path.slice(0, end)];
}

function isWithin(path: string, at: OptionPath | SectionPath | string): boolean {
  return path === at || path.startsWith(`${at}.`);
}

/** A rule that asks for an option that was refused, or that stands in a section that was, gets REFUSED. */
function nest(values: ReadonlyMap<OptionPath, unknown>, failed: ReadonlySet<string>): Config {
  const root: Record<string, unknown> = {};
  for (const path of OPTION_PATHS) {
    const names = path.split('.');
    if (SECTION_PATHS.has(path)) names.push(OWN_MEMBER);
    const last = names.pop() ?? path;
    let section = root;
    for (const name of names) {
      section[name] ??= {};
      section = section[name] as Record<string, unknown>;
    }
    const get = () => {
      throw REFUSED;
    };
    if ([...failed].some((at) => isWithin(path, at))) Object.defineProperty(section, last, { get, enumerable: true });
    else section[last] = values.get(path);
  }
  return root as unknown as Config;
}

function freeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || value instanceof Secret || ArrayBuffer.isView(value)) {
    return value;
  }
  for (const member of Object.values(value)) freeze(member);
  return Object.freeze(value);
}

// The setting of each option that takes effect, with references to variables and files followed. One that leads nowhere
// is refused by the option's schema.

function resolveSettings(
  layers: readonly Layer[],
  given: References | undefined,
  { isEnclaveBuild, withoutTokens }: { readonly isEnclaveBuild: boolean; readonly withoutTokens: boolean },
): { readonly settings: ReadonlyMap<OptionPath, Setting>; readonly referenced: readonly string[] } {
  const settings = new Map<OptionPath, Setting>();
  for (const layer of layers.toReversed()) {
    for (const [path, setting] of layer.settings) settings.set(path, setting);
  }
  for (const member of layers.flatMap(({ members = [] }) => members)) {
    settings.set(member.option, member.over(settings.get(member.option)));
  }
  // Also where the file is only checked on the way into an image.
  const isForEnclave = isEnclaveBuild || settings.get('tee.platform')?.value === 'nitro';
  const references = isForEnclave ? undefined : given;
  const sources = { references, unsetIsFine: withoutTokens };
  const referenced = [
    ...readTokens(settings, sources),
    ...readUrl(settings, { references }),
    ...readPersistSecret(settings, sources),
  ];
  return { settings, referenced };
}

function readTokens(settings: Map<OptionPath, Setting>, sources: SecretSources): readonly string[] {
  const setting = settings.get('static_auth');
  if (setting === undefined) return [];
  const { value, variables } = withSecrets(setting.value, sources);
  settings.set('static_auth', { ...setting, value });
  return variables;
}

function readUrl(settings: Map<OptionPath, Setting>, sources: SecretSources): readonly string[] {
  const setting = settings.get('anti_slashing.url');
  if (typeof setting?.value !== 'string') return [];
  const { secret, variable } = readSecret(setting.value, sources);
  const text = secret instanceof BrokenReference ? '' : secret.reveal().toString('utf8');
  const broken = secret instanceof BrokenReference ? secret : surrounded(text);
  settings.set('anti_slashing.url', { ...setting, value: broken ?? text });
  return variable === undefined ? [] : [variable];
}

function readPersistSecret(settings: Map<OptionPath, Setting>, sources: SecretSources): readonly string[] {
  const setting = settings.get('key_sources.memory.persist_secret');
  if (typeof setting?.value !== 'string') return [];
  const { secret, variable } = readSecret(setting.value, sources);
  settings.set('key_sources.memory.persist_secret', { ...setting, value: secret });
  return variable === undefined ? [] : [variable];
}
