// The environment layer: every variable that starts with SVC_ is an option, a member of one with a fixed shape,
// belongs to the operator commands, was injected by Kubernetes for a Service, or is a mistake. A mistake is refused,
// because a mistyped name would otherwise leave its option at the default unnoticed.

import { renderName, suggest, type Violation } from '../../common/command-line/violations.ts';
import type { Layer, MemberSetting, Setting } from '../../signer/config/layers/layer.ts';
import { OPTION_PATHS, type OptionPath } from '../../signer/config/options.ts';
import { MEMBERS, memberSetting, type ObjectMember, readMember, readOptionText } from './members.ts';
import { variableOf } from './option-names.ts';

export type LayerEnvironment = Readonly<Record<string, string | undefined>>;

const PATH_OF_VARIABLE: ReadonlyMap<string, OptionPath> = new Map(OPTION_PATHS.map((path) => [variableOf(path), path]));
const MEMBER_OF_VARIABLE: ReadonlyMap<string, ObjectMember> = new Map(
  MEMBERS.map((member) => [memberVariable(member), member]),
);

export function readEnvironmentLayer(env: LayerEnvironment): Layer {
  const settings = new Map<OptionPath, Setting>();
  const members: MemberSetting[] = [];
  const violations: Violation[] = [];
  for (const [variable, path] of PATH_OF_VARIABLE) {
    const text = env[variable];
    if (text === undefined) continue;
    const read = readOptionText(path, text);
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
  /** Variables that Kubernetes sets for its Services: none of them is an option of the signer. */
  readonly ignored: readonly string[];
}

/**
 * Variables that look like options and are not options. `referenced` are those that the configuration itself names,
 * `env:VAR`.
 */
export function unknownVariables(env: LayerEnvironment, referenced: readonly string[]): UnknownVariables {
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
