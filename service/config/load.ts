// The configuration of an ordinary host: arguments, environment and file as layers, in order of precedence
// (specification/operating.md#configuration). signer/config/load.ts judges them. Exits nothing and writes nothing: the
// program prints the violations and exits 78 (specification/operating.md#startup-failures).

import { readFileSync } from 'node:fs';
import type { Ceremony } from '../../ceremony/definition.ts';
import { adviceOn } from '../../common/command-line/file-faults.ts';
import { renderName, suggest, type Violation } from '../../common/command-line/violations.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { EMPTY_LAYER, readConfigurationFile, refused } from '../../signer/config/layers/file.ts';
import type { Layer, MemberSetting, Setting } from '../../signer/config/layers/layer.ts';
import { type ConfigurationRead, readLayers } from '../../signer/config/load.ts';
import { OPTION_PATHS, type OptionPath } from '../../signer/config/options.ts';
import { type Flags, readFlags } from './flags.ts';
import { MEMBERS, memberSetting, type ObjectMember, readMember, readText } from './members.ts';
import { variableOf } from './option-names.ts';
import { SERVICE_RULES, SERVICE_WARNINGS } from './rules.ts';
import { readSecretFile } from './secret-file.ts';

export interface LoadInput {
  readonly argv: readonly string[];
  readonly env: Environment;
  readonly readFile?: (path: string) => Uint8Array;
}

export interface Build {
  /** The ceremony of the image that the configuration is for; false for a service. */
  readonly compiledCeremony: Ceremony | false;
  /** The configuration is looked at and not run, as with `--check`: it may be one for an image. */
  readonly onlyRead?: boolean;
  /** Nobody will be authenticated: the tokens of unset variables are not asked for. */
  readonly withoutTokens?: boolean;
}

export type Loaded =
  | (Extract<ConfigurationRead, { readonly ok: true }> & {
      readonly check: boolean;
      readonly offline: boolean;
      readonly decrypt: boolean;
      readonly isEmpty: boolean;
      /** Variables that look like options and were injected by Kubernetes. */
      readonly ignoredVariables: readonly string[];
    })
  | { readonly ok: false; readonly violations: readonly Violation[] };

export function loadConfig(input: LoadInput, build: Build): Loaded {
  const flags = readFlags(input.argv);
  const file = readFileLayer(flags, input.readFile ?? ((path) => readFileSync(path)));
  let ignoredVariables: readonly string[] = [];
  const layers = [flags, readEnvironment(input.env), file];
  const isEmpty = flags.configPath === undefined && layers.every(saysNothing);
  const read = readLayers(layers, {
    rules: SERVICE_RULES,
    warnings: SERVICE_WARNINGS,
    references: { env: input.env, readFile: readSecretFile },
    compiledCeremony: build.compiledCeremony,
    withoutTokens: build.withoutTokens === true,
    runs: !flags.check && build.onlyRead !== true,
    onlyRead: build.onlyRead === true,
    allowUnsafeNoopAntiSlashing: flags.allowUnsafeNoopAntiSlashing,
    strayVariables: (referenced) => {
      const unknown = unknownVariables(input.env, referenced);
      ignoredVariables = unknown.ignored;
      return unknown.violations;
    },
  });
  const { check, offline, decrypt } = flags;
  return read.ok ? { ...read, check, offline, decrypt, isEmpty, ignoredVariables } : read;
}

function saysNothing({ settings, sections, members = [] }: Layer): boolean {
  return settings.size + sections.size + members.length === 0;
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

// The environment layer: every variable that starts with SVC_ is an option, a member of one with a fixed shape,
// belongs to the operator commands, was injected by Kubernetes for a Service, or is a mistake. A mistake is refused,
// because a mistyped name would otherwise leave its option at the default unnoticed.

type Environment = Readonly<Record<string, string | undefined>>;

const PATH_OF_VARIABLE: ReadonlyMap<string, OptionPath> = new Map(OPTION_PATHS.map((path) => [variableOf(path), path]));
const MEMBER_OF_VARIABLE: ReadonlyMap<string, ObjectMember> = new Map(
  MEMBERS.map((member) => [memberVariable(member), member]),
);

function readEnvironment(env: Environment): Layer {
  const settings = new Map<OptionPath, Setting>();
  const members: MemberSetting[] = [];
  const violations: Violation[] = [];
  for (const [variable, path] of PATH_OF_VARIABLE) {
    const text = env[variable];
    if (text === undefined) continue;
    const read = readText(path, text);
    if (read === undefined) violations.push(notJson(path, variable));
    else settings.set(path, { value: read.value, originAt: () => `environment ${variable}` });
  }
  for (const [variable, member] of MEMBER_OF_VARIABLE) {
    const text = env[variable];
    if (text === undefined) continue;
    const read = readMember(member, text);
    if (read === undefined) violations.push(notJson([member.option, ...member.within].join('.'), variable));
    else members.push(memberSetting(member, { value: read.value, originAt: () => `environment ${variable}` }));
  }
  return { settings, members, sections: new Map(), violations };
}

function notJson(path: string, variable: string): Violation {
  const remedy = 'write the value as one JSON text, without repeated keys';
  return { path, problem: 'is not well-formed JSON', remedy, origin: `environment ${variable}` };
}

interface UnknownVariables {
  readonly violations: readonly Violation[];
  /** What Kubernetes puts there for Services: none of it is meant for us. */
  readonly ignored: readonly string[];
}

/**
 * Variables that look like options and are none. `referenced` are those that the configuration itself names,
 * `env:VAR`.
 */
function unknownVariables(env: Environment, referenced: readonly string[]): UnknownVariables {
  const unknown = Object.keys(env)
    .filter((variable) => variable.startsWith('SVC_') && env[variable] !== undefined)
    .filter((variable) => !variable.startsWith('SVC_OPERATOR_'))
    .filter((variable) => !PATH_OF_VARIABLE.has(variable) && !MEMBER_OF_VARIABLE.has(variable))
    .filter((variable) => !referenced.includes(variable));
  const ignored = unknown.filter((variable) => isInjectedByKubernetes(variable, env));
  const known = [...PATH_OF_VARIABLE.keys(), ...MEMBER_OF_VARIABLE.keys()];
  const violations = unknown
    .filter((variable) => !ignored.includes(variable))
    .map((variable) => ({
      path: renderName(variable),
      problem: 'is not the variable of an option',
      remedy: suggest(variable, known, 'unset it: names that start with SVC_ are for options'),
      origin: `environment ${renderName(variable)}`,
    }));
  return { violations, ignored };
}

function memberVariable({ option, within }: ObjectMember): string {
  return [variableOf(option), ...within.map((name) => name.toUpperCase())].join('__');
}

// Variables that Kubernetes injects into every container for the Services of its namespace (Kubernetes, "Environment
// variables" under Service): those of a Service whose name begins with `svc` begin with SVC_, as options do. Only
// what Kubernetes writes is taken for that: a mistyped option that ends in _PORT must not pass.

/** `SVC_SERVICE_HOST`, `SVC_FOO_SERVICE_PORT_HTTP`: no option has such a name. */
const SERVICE = /^SVC(?:_[A-Z0-9_]+)?_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/;
/** The older form, after Docker links: `SVC_PORT`, `SVC_FOO_PORT_80_TCP_ADDR`. */
const LINK = /^SVC(?:_[A-Z0-9_]+)?_PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/;
const PORT = /^(?<service>SVC(?:_[A-Z0-9_]+)?)_PORT$/;

function isInjectedByKubernetes(variable: string, env: Readonly<Record<string, string | undefined>>): boolean {
  if (SERVICE.test(variable) || LINK.test(variable)) return true;
  const service = PORT.exec(variable)?.groups?.['service'];
  if (service === undefined) return false;
  return env[`${service}_SERVICE_HOST`] !== undefined || /^(?:tcp|udp|sctp):\/\//.test(env[variable] ?? '');
}
