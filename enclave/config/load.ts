// From arguments, environment and file to one frozen configuration, or to everything that is wrong with them. Layers in
// order of precedence (specification/operating.md#configuration); only the value that takes effect is validated. Exits
// nothing and writes nothing: main.ts prints the violations and exits 78 (specification/operating.md#startup-failures).

import { readFileSync } from 'node:fs';
import type { Ceremony } from '../../ceremony/definition.ts';
import { adviceOn } from '../../command-line/file-faults.ts';
import { renderPath, type Violation } from '../../command-line/violations.ts';
import { errorCode } from '../../formats/error-code.ts';
import { explainIssue } from '../api/issues.ts';
import { type Environment, readEnvironment, unknownVariables } from './layers/environment.ts';
import { EMPTY_LAYER, readConfigurationFile, refused } from './layers/file.ts';
import { type Flags, readFlags } from './layers/flags.ts';
import type { Layer, Setting } from './layers/layer.ts';
import {
  type Config,
  OPTION_PATHS,
  type OptionPath,
  OWN_MEMBER,
  optionAt,
  SECTION_PATHS,
  type SectionPath,
} from './options.ts';
import { remedyFor } from './remedy.ts';
import type { ConfigFinding, Facts } from './rules/rule.ts';
import { RULES } from './rules/rules.ts';
import { resolveSettings } from './settings.ts';
import { Secret, wipeSecrets } from './values/secret.ts';
import { type ConfigWarning, warningsOf } from './warnings.ts';

export interface LoadInput {
  /** The arguments after `server`. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** How the file named by `-c` is read; the disk unless given. Throws when it cannot be. */
  readonly readFile?: (path: string) => Uint8Array;
}

export interface Build {
  /** An enclave build: the ceremony that is compiled into the image. */
  readonly compiledCeremony: Ceremony | false;
  /** The configuration is looked at and not run, as with `--check`: it may be one for an image. */
  readonly onlyRead?: boolean;
  /** Nobody will be authenticated: the tokens of unset variables are not asked for. */
  readonly withoutTokens?: boolean;
}

export type Loaded =
  | {
      readonly ok: true;
      readonly config: Config;
      /** Where each option's value comes from, `default` included. */
      readonly origins: ReadonlyMap<OptionPath, string>;
      /** `--check`: validate and exit. */
      readonly check: boolean;
      /** `--offline`: the check looks at files only. */
      readonly offline: boolean;
      /** What the configuration allows and hardly anybody wants. */
      readonly warnings: readonly ConfigWarning[];
      /** Variables that look like options and were injected by Kubernetes. */
      readonly ignoredVariables: readonly string[];
    }
  | { readonly ok: false; readonly violations: readonly Violation[] };

export function loadConfig(input: LoadInput, build: Build): Loaded {
  const flags = readFlags(input.argv);
  const file = readFileLayer(flags, input.readFile ?? ((path) => readFileSync(path)));
  const environment = readEnvironment(input.env);
  const layers: readonly Layer[] = [flags, environment, file];
  const { settings, referenced } = resolveSettings(layers, input.env, {
    isEnclaveBuild: build.compiledCeremony !== false,
    withoutTokens: build.withoutTokens === true,
  });

  const violations = layers.flatMap((layer) => layer.violations);
  const unknown = unknownVariables(input.env, referenced);
  violations.push(...unknown.violations);
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

  const config = nest(values);
  const isSet = (at: string): boolean =>
    layers.some(({ sections }) => sections.has(at)) || [...settings.keys()].some((path) => isWithin(path, at));
  const facts: Facts = {
    isSet,
    compiledCeremony: build.compiledCeremony,
    runs: !flags.check && build.onlyRead !== true,
    allowUnsafeNoopAntiSlashing: flags.allowUnsafeNoopAntiSlashing,
  };
  // Without the file, what the rules would miss may well be in it.
  if (!layers.some(({ unreadable }) => unreadable)) {
    for (const finding of findings(config, facts, failed)) violations.push(locate(finding, settings, layers));
  }
  if (violations.length > 0) {
    for (const value of [...values.values(), ...[...settings.values()].map((setting) => setting.value)]) {
      wipeSecrets(value); // a reload goes on without what was read
    }
    return { ok: false, violations };
  }
  const origins = new Map(OPTION_PATHS.map((path) => [path, settings.get(path)?.originAt([]) ?? 'default']));
  return {
    ok: true,
    config: freeze(config),
    origins,
    check: flags.check,
    offline: flags.offline,
    warnings: warningsOf(config, facts),
    ignoredVariables: unknown.ignored,
  };
}

function readFileLayer({ configPath }: Flags, readFile: (path: string) => Uint8Array): Layer {
  if (configPath === undefined) return EMPTY_LAYER;
  try {
    return readConfigurationFile(readFile(configPath), configPath);
  } catch (error) {
    const code = errorCode(error);
    const problem = `cannot be read${code === undefined ? '' : ` (${code})`}`;
    const remedy = adviceOn(code ?? '') ?? 'name a file that this user may read';
    return refused([{ path: configPath, problem, remedy, origin: 'flag --config' }]);
  }
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

/**
 * The schemas of the API quote what they refuse, to who sent it; here it would go to a log, and may be a pasted secret.
 */
function sentence(message: string): string {
  const shown = message.replaceAll(/"(?:[^"\\]|\\.)*"/g, '(not shown)');
  return /^(?:must|is|has|refers) /.test(shown) ? shown : `is refused: ${shown}`;
}

function findings(config: Config, facts: Facts, failed: ReadonlySet<string>): ConfigFinding[] {
  const isSound = (at: string): boolean => ![...failed].some((path) => isWithin(path, at));
  return RULES.filter(({ reads }) => reads.every(isSound)).flatMap((rule) => rule.broken(config, facts));
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

function isWithin(path: string, at: OptionPath | SectionPath | string): boolean {
  return path === at || path.startsWith(`${at}.`);
}

/** Options that were refused are missing from the result; rules that would read them are skipped. */
function nest(values: ReadonlyMap<OptionPath, unknown>): Config {
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
    section[last] = values.get(path);
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
