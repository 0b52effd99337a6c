// Options whose feature this version does not have. Asking for one stops the start, because running without what the
// configuration asks for would be worse. The list only ever shrinks: a feature removes its row.

import type { Config, OptionPath, SectionPath } from './options.ts';
import type { Facts, Finding } from './rule.ts';

export interface Missing {
  readonly at: OptionPath | SectionPath;
  /** The value that cannot be asked for; empty when it is the whole section. */
  readonly says: string;
  readonly asked: (config: Config, isSet: Facts['isSet']) => boolean;
}

export const NOT_AVAILABLE_YET: readonly Missing[] = [
  value('tls.mode', 'ratls', ({ tls }) => tls.mode === 'ratls'),
  value('tee.platform', 'nitro', ({ tee }) => tee.platform === 'nitro'),
  value('server.seccomp', 'best_effort or required', ({ server }) => server.seccomp !== 'off'),
];

export function missingFeature({ at, says }: Missing): Finding {
  const problem = `${says} is not available yet in this version`.trimStart();
  return { at, problem, remedy: 'remove it, or run a version that has it' };
}

function value(at: OptionPath, says: string, asked: (config: Config) => boolean): Missing {
  return { at, says, asked };
}
