// Violations on a terminal, all at once. An image has only a log, and says them there.

import { type Paint, painter } from './paint.ts';
import type { Violation } from './violations.ts';
import { boundOf, type Shown, wrap } from './wrap.ts';

/** One mistake repeated over a list of keys must not bury the others. */
const MAX_RENDERED = 200;
export function writeViolations(violations: readonly Violation[], { stderr, env }: ReportOutput): void {
  stderr.write(renderViolations(violations, boundOf(stderr), painter(stderr, env)));
}

interface ReportOutput {
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
