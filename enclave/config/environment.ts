// The environment layer: every variable that starts with SVC_ is an option, belongs to the operator commands, or is a
// mistake. An unknown one is refused, because a mistyped name would otherwise leave its option at the default unnoticed.

import { renderName, suggest, type Violation } from '../api/violations.ts';
import { type Layer, readText, type Setting } from './layer.ts';
import { OPTION_PATHS, type OptionPath, variableOf } from './options.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const PATH_OF_VARIABLE: ReadonlyMap<string, OptionPath> = new Map(OPTION_PATHS.map((path) => [variableOf(path), path]));

export function readEnvironment(env: Environment): Layer {
  const settings = new Map<OptionPath, Setting>();
  const violations: Violation[] = [];
  for (const [variable, path] of PATH_OF_VARIABLE) {
    const text = env[variable];
    if (text === undefined) continue;
    const origin = `environment ${variable}`;
    const read = readText(path, text);
    if (read === undefined) {
      const remedy = 'write the value as one JSON text, without repeated keys';
      violations.push({ path, problem: 'is not well-formed JSON', remedy, origin });
    } else {
      settings.set(path, { value: read.value, originAt: () => origin });
    }
  }
  return { settings, sections: new Map(), violations };
}

/** Variables that look like options and are none. `referenced` are those that the configuration itself names, `env:VAR`. */
export function unknownVariables(env: Environment, referenced: readonly string[]): Violation[] {
  return Object.keys(env)
    .filter((variable) => variable.startsWith('SVC_') && env[variable] !== undefined)
    .filter((variable) => !variable.startsWith('SVC_OPERATOR_') && !PATH_OF_VARIABLE.has(variable))
    .filter((variable) => !referenced.includes(variable))
    .map((variable) => ({
      path: renderName(variable),
      problem: 'is not the variable of an option',
      remedy: suggest(variable, PATH_OF_VARIABLE.keys(), 'unset it: names that start with SVC_ are for options'),
      origin: `environment ${renderName(variable)}`,
    }));
}
