// The environment layer: every variable that starts with SVC_ is an option, a member of one with a fixed shape,
// belongs to the operator commands, was injected by Kubernetes for a Service, or is a mistake. A mistake is refused,
// because a mistyped name would otherwise leave its option at the default unnoticed.

import { renderName, suggest, type Violation } from '../../../command-line/violations.ts';
import { OPTION_PATHS, type OptionPath, variableOf } from '../options.ts';
import { isInjectedByKubernetes } from './kubernetes.ts';
import { type Layer, type MemberSetting, readText, type Setting } from './layer.ts';
import { MEMBERS, type ObjectMember, readMember } from './members.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const PATH_OF_VARIABLE: ReadonlyMap<string, OptionPath> = new Map(OPTION_PATHS.map((path) => [variableOf(path), path]));
const MEMBER_OF_VARIABLE: ReadonlyMap<string, ObjectMember> = new Map(
  MEMBERS.map((member) => [memberVariable(member), member]),
);

export function readEnvironment(env: Environment): Layer {
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
    else members.push({ ...member, value: read.value, originAt: () => `environment ${variable}` });
  }
  return { settings, members, sections: new Map(), violations };
}

function notJson(path: string, variable: string): Violation {
  const remedy = 'write the value as one JSON text, without repeated keys';
  return { path, problem: 'is not well-formed JSON', remedy, origin: `environment ${variable}` };
}

export interface UnknownVariables {
  readonly violations: readonly Violation[];
  /** What Kubernetes puts there for Services: none of it is meant for us. */
  readonly ignored: readonly string[];
}

/**
 * Variables that look like options and are none. `referenced` are those that the configuration itself names,
 * `env:VAR`.
 */
export function unknownVariables(env: Environment, referenced: readonly string[]): UnknownVariables {
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
