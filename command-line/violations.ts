// A violation: one thing wrong with the configuration, said so that the operator finds the place and knows what to do.
// Violations never repeat what was written, because it may be a secret in the wrong place.

import type { YamlProblem } from '../formats/yaml.ts';
import { type Paint, painter } from './color.ts';
import { nearest } from './nearest.ts';
import { boundOf, type Shown, wrap } from './wrap.ts';

export interface Violation {
  /** The option, or the place in it: `static_auth.tokens[2].secret`. */
  readonly path: string;
  /** Completes the path to a sentence. */
  readonly problem: string;
  readonly remedy: string;
  /** `flag --network`, `environment SVC_NETWORK`, `config.yaml line 12` or `default`. */
  readonly origin: string;
}

/** One mistake repeated over a list of keys must not bury the others. */
const MAX_RENDERED = 200;
const MAX_NAME_CHARACTERS = 80;

export function writeViolations(violations: readonly Violation[], { stderr, env }: Said): void {
  stderr.write(renderViolations(violations, boundOf(stderr), painter(stderr, env)));
}

interface Said {
  readonly stderr: Shown & { write(text: string): unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function renderViolations(
  violations: readonly Violation[],
  columns = Number.POSITIVE_INFINITY,
  paint: Paint = (text) => text,
): string {
  const count = violations.length === 1 ? '1 violation' : `${violations.length} violations`;
  const items = violations
    .slice(0, MAX_RENDERED)
    .map(({ path, problem, remedy, origin }) =>
      [
        hanging('  ', `${path} ${problem}`, columns),
        hanging('    set by: ', origin, columns),
        hanging('    to do:  ', remedy, columns),
      ].join(''),
    );
  const rest = violations.length > MAX_RENDERED ? `\n  and ${violations.length - MAX_RENDERED} more\n` : '';
  return `${paint(`The configuration has ${count}:`, 'bad')}\n\n${items.join('\n')}${rest}`;
}

/** Later lines stand under the first one's text. */
function hanging(start: string, text: string, columns: number): string {
  return wrap(text, columns - start.length)
    .map((line, at) => `${at === 0 ? start : ' '.repeat(start.length)}${line}\n`)
    .join('');
}

/** A file that is no strict YAML (formats/yaml.ts). @param name what messages call the file */
export function yamlViolations(problems: readonly YamlProblem[], name: string): Violation[] {
  const remedy = 'write plain YAML 1.2: one document, every key once, no anchors, aliases or tags';
  return problems.map(({ line, problem }) => ({
    path: 'the file',
    problem: `is refused: ${problem}`,
    remedy,
    origin: `${name} line ${line}`,
  }));
}

/**
 * `static_auth`, `tokens`, 2, `secret` as `static_auth.tokens[2].secret`; names that are not plain are not repeated.
 */
export function renderPath(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      return index === 0 ? renderName(String(part)) : `.${renderName(String(part))}`;
    })
    .join('');
}

/** A name the operator wrote. `{secret:hunter2}` is a key in YAML, so what does not look like a name is not shown. */
export function renderName(name: string): string {
  return name.length <= MAX_NAME_CHARACTERS && /^[A-Za-z_-][A-Za-z0-9_.-]*$/.test(name) ? name : '(not a name)';
}

/** What the operator probably meant, as advice. */
export function suggest(written: string, known: Iterable<string>, otherwise: string): string {
  const near = nearest(written, known);
  return near === undefined ? otherwise : `did you mean ${near}?`;
}
