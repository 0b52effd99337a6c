// One thing wrong with the configuration. It never repeats what was written, which may be a secret in the wrong place.

import type { YamlProblem } from '../formats/yaml.ts';
import { nearest } from './nearest.ts';

export interface Violation {
  /** `static_auth.tokens[2].secret`. */
  readonly path: string;
  readonly problem: string;
  readonly remedy: string;
  /** `flag --network`, `environment SVC_NETWORK`, `config.yaml line 12` or `default`. */
  readonly origin: string;
}

const MAX_NAME_CHARACTERS = 80;

export function yamlViolations(problems: readonly YamlProblem[], name: string): Violation[] {
  const remedy = 'write plain YAML 1.2: one document, every key once, no anchors, aliases or tags';
  return problems.map(({ line, problem }) => ({
    path: 'the file',
    problem: `is refused: ${problem}`,
    remedy,
    origin: `${name} line ${line}`,
  }));
}

/** `static_auth`, `tokens`, 2 as `static_auth.tokens[2]`. */
export function renderPath(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      return index === 0 ? renderName(String(part)) : `.${renderName(String(part))}`;
    })
    .join('');
}

/** `{secret:hunter2}` is a key in YAML, so what does not look like a name is not shown. */
export function renderName(name: string): string {
  return name.length <= MAX_NAME_CHARACTERS && /^[A-Za-z_-][A-Za-z0-9_.-]*$/.test(name) ? name : '(not a name)';
}

export function suggest(written: string, known: Iterable<string>, otherwise: string): string {
  const bare = written.replace(/^["'\s]+|["'\s]+$/g, '');
  // A file of variables for Docker keeps quotes, blanks and carriage returns.
  if (bare !== written && [...known].includes(bare)) return `write ${bare} without quotes or blanks around it`;
  const near = nearest(written, known);
  return near === undefined ? otherwise : `did you mean ${near}?`;
}
