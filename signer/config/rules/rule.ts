// What a cross-field rule is: one row that says what must hold between options, which options it reads, and what breaks
// it.

import type { Ceremony } from '../../../ceremony/definition.ts';
import type { Config, OptionPath, SectionPath } from '../options.ts';

export interface ConfigFinding {
  readonly at: OptionPath | SectionPath;
  /** The member of the value, when the option is an object or a list. */
  readonly within?: readonly PropertyKey[];
  readonly problem: string;
  readonly remedy: string;
}

export interface Facts {
  /** Whether any layer sets the option or anything in the section, or writes the section down. */
  readonly isSet: (at: OptionPath | SectionPath) => boolean;
  /** An enclave build: the ceremony that is compiled in. */
  readonly compiledCeremony: Ceremony | false;
  /** The signer is to run with it, here; it is not only checked. */
  readonly runs: boolean;
  /** It is for a command beside the signer, such as `setup`, which may come before everything in it is made. */
  readonly onlyRead: boolean;
  readonly allowUnsafeNoopAntiSlashing: boolean;
}

export interface Rule {
  /** Its number in specification/operating.md#startup-failures. */
  readonly startupFailure?: number;
  readonly says: string;
  readonly reads: readonly (OptionPath | SectionPath)[];
  readonly broken: (config: Config, facts: Facts) => readonly ConfigFinding[];
}

export function when(broken: boolean, finding: ConfigFinding): readonly ConfigFinding[] {
  return broken ? [finding] : [];
}

/** The positions of values that an earlier position has already. */
export function repeated(values: readonly string[]): number[] {
  const seen = new Set<string>();
  return values.flatMap((value, index) => {
    if (seen.has(value)) return [index];
    seen.add(value);
    return [];
  });
}
