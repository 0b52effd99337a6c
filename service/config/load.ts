// The configuration of an ordinary host: arguments, environment and file as layers, in order of precedence
// (specification/operating.md#configuration). signer/config/load.ts judges them. Exits nothing and writes nothing: the
// program prints the violations and exits 78 (specification/operating.md#startup-failures).

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Ceremony } from '../../ceremony/definition.ts';
import type { Flag } from '../../common/command-line/command.ts';
import { adviceOn } from '../../common/command-line/file-faults.ts';
import { renderName, suggest, type Violation } from '../../common/command-line/violations.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { EMPTY_LAYER, readConfigurationFile, refused } from '../../signer/config/layers/file.ts';
import type { Layer, MemberSetting, Setting } from '../../signer/config/layers/layer.ts';
import { type ConfigurationRead, readLayers } from '../../signer/config/load.ts';
import { OPTION_PATHS, type OptionPath, optionAt } from '../../signer/config/options.ts';
import { MEMBERS, memberSetting, type ObjectMember, readMember, readText } from './members.ts';
import { flagOf, variableOf } from './option-names.ts';
import { SERVICE_RULES, SERVICE_WARNINGS } from './rules.ts';
import { readSecretFile } from './secret-file.ts';
import { SERVER_FLAGS } from './server-flags.ts';

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
      readonly configPath: string | undefined;
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
  const { check, offline, decrypt, configPath } = flags;
  return read.ok ? { ...read, check, offline, decrypt, isEmpty, configPath, ignoredVariables } : read;
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

// The flag layer: the arguments of `strongroom server`. node:util parseArgs splits them; the strictness is ours, over
// its tokens, because its strict mode stops at the first mistake and every mistake is to be reported. Refused: unknown
// flags, repeated single flags, flags without their value, stray arguments.

interface Flags extends Layer {
  readonly configPath: string | undefined;
  readonly check: boolean;
  readonly offline: boolean;
  readonly decrypt: boolean;
  readonly allowUnsafeNoopAntiSlashing: boolean;
}

const PATH_OF_FLAG: ReadonlyMap<string, OptionPath> = new Map(
  OPTION_PATHS.flatMap((path) => {
    const flag = flagOf(path);
    return flag === undefined ? [] : [[flag, path] as const];
  }),
);

const OWN_FLAGS: ReadonlyMap<string, Flag> = new Map(
  Object.entries(SERVER_FLAGS).map(([name, flag]) => [`--${name}`, flag]),
);

interface Written {
  readonly flag: string;
  readonly value: string | undefined;
}

function readFlags(argv: readonly string[]): Flags {
  const violations: Violation[] = [];
  const written = readArguments(argv, violations);
  const byFlag = Map.groupBy(written, ({ flag }) => flag);
  const settings = new Map<OptionPath, Setting>();
  for (const [flag, uses] of byFlag) {
    const path = PATH_OF_FLAG.get(flag);
    const repeatable = path !== undefined && optionAt(path).kind.form === 'repeated';
    const problem = problemOf(flag, uses, repeatable);
    if (problem !== undefined) violations.push({ ...problem, path: path ?? flag, origin: `flag ${flag}` });
    else if (path !== undefined) settings.set(path, settingOf(path, flag, uses));
  }
  if (byFlag.has('--offline') && !byFlag.has('--check')) violations.push(OFFLINE_ALONE);
  if (byFlag.has('--decrypt') && !byFlag.has('--check')) violations.push(DECRYPT_ALONE);
  return {
    settings,
    sections: new Map(),
    violations,
    configPath: byFlag.get('--config')?.[0]?.value,
    check: byFlag.has('--check'),
    offline: byFlag.has('--offline'),
    decrypt: byFlag.has('--decrypt'),
    allowUnsafeNoopAntiSlashing: byFlag.has('--allow-unsafe-noop-anti-slashing'),
  };
}

const OFFLINE_ALONE: Violation = {
  path: '--offline',
  problem: 'is given without --check, and no signer runs without its store',
  remedy: 'add --check, or remove it',
  origin: 'flag --offline',
};

const DECRYPT_ALONE: Violation = {
  path: '--decrypt',
  problem: 'is given without --check, and a start opens every keystore anyhow',
  remedy: 'add --check, or remove it',
  origin: 'flag --decrypt',
};

function readArguments(argv: readonly string[], violations: Violation[]): Written[] {
  const written: Written[] = [];
  const tokens = tokenise(argv);
  for (let position = 0; position < tokens.length; position++) {
    const token = tokens[position];
    const next = tokens[position + 1];
    if (token?.kind === 'option') {
      const flag = token.name.length === 1 ? token.rawName : `--${token.name}`;
      if (!isKnown(flag)) {
        violations.push(unknownFlag(flag));
        // What follows an unknown flag is most likely its value: one mistake, one violation.
        if (token.value === undefined && next?.kind === 'positional') position++;
      } else if (formOf(flag) === 'boolean' && token.value === undefined && isBooleanAfter(token.index, next)) {
        written.push({ flag, value: next.value });
        position++;
      } else {
        // A value that looks like a flag is a forgotten value, unless it is joined on by `=`.
        const forgotten = token.value?.startsWith('-') === true && token.inlineValue === false;
        written.push({ flag, value: forgotten ? undefined : token.value });
      }
    } else if (token?.kind === 'positional') {
      const remedy = 'remove it: the server takes flags only';
      violations.push({ path: 'an argument', problem: 'is not a flag', remedy, origin: `argument ${token.index + 1}` });
    }
  }
  return written;
}

function tokenise(argv: readonly string[]) {
  const options: Record<string, { type: 'string' | 'boolean'; short?: string; multiple: true }> = {};
  for (const flag of [...PATH_OF_FLAG.keys(), ...OWN_FLAGS.keys()]) {
    const type = formOf(flag) === 'boolean' || formOf(flag) === 'switch' ? 'boolean' : 'string';
    options[flag.slice(2)] = { type, multiple: true };
  }
  options['config'] = { type: 'string', short: 'c', multiple: true };
  options['help'] = { type: 'boolean', short: 'h', multiple: true };
  return parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

function problemOf(
  flag: string,
  uses: readonly Written[],
  repeatable: boolean,
): { readonly problem: string; readonly remedy: string } | undefined {
  if (uses.length > 1 && !repeatable) return { problem: 'is given more than once', remedy: `give ${flag} once` };
  const form = formOf(flag);
  if (form === 'switch' && uses.some(({ value }) => value !== undefined)) {
    return { problem: 'takes no value', remedy: `write ${flag} alone` };
  }
  if (form !== 'switch' && form !== 'boolean' && uses.some(({ value }) => value === undefined)) {
    return { problem: 'has a flag without its value', remedy: `write ${flag}=VALUE` };
  }
  return undefined;
}

function settingOf(path: OptionPath, flag: string, uses: readonly Written[]): Setting {
  const origin = `flag ${flag}`;
  const originAt = (): string => origin;
  if (formOf(flag) === 'repeated') return { value: uses.map(({ value }) => value), originAt };
  // A boolean flag without a value says true.
  return { value: readText(path, uses[0]?.value ?? 'true')?.value, originAt };
}

function isKnown(flag: string): boolean {
  return PATH_OF_FLAG.has(flag) || OWN_FLAGS.has(flag);
}

function formOf(flag: string): string {
  const path = PATH_OF_FLAG.get(flag);
  if (path !== undefined) return optionAt(path).kind.form;
  return OWN_FLAGS.get(flag)?.placeholder === undefined ? 'switch' : 'text';
}

function unknownFlag(flag: string): Violation {
  const known = [...PATH_OF_FLAG.keys(), ...OWN_FLAGS.keys()];
  const shown = renderName(flag);
  const remedy = suggest(flag, known, 'remove it; `strongroom server --help` lists the flags');
  return { path: shown, problem: 'is not a flag of the server', remedy, origin: `flag ${shown}` };
}

type Token = ReturnType<typeof tokenise>[number];

/** `--flag false`, as two arguments. */
function isBooleanAfter(index: number, next: Token | undefined): next is Extract<Token, { kind: 'positional' }> {
  return next?.kind === 'positional' && next.index === index + 1 && (next.value === 'true' || next.value === 'false');
}
