// A cross-field rule: what must hold between options, and what breaks it.

import type { Ceremony } from '../../../ceremony/definition.ts';
import type { AuthoritiesOf } from '../../tee/authorities.ts';
import type { Config, OptionPath, SectionPath } from '../options.ts';

export interface ConfigFinding {
  readonly at: OptionPath | SectionPath;
  readonly within?: readonly PropertyKey[];
  readonly problem: string;
  readonly remedy: string;
}

export interface Facts {
  readonly isSet: (at: OptionPath | SectionPath) => boolean;
  readonly compiledCeremony: Ceremony | false;
  /** Which hosts the image has authorities of their own for; undefined where no image is read. */
  readonly compiledAuthorities: AuthoritiesOf | undefined;
  readonly runs: boolean;
  /**
   * The configuration is read for a command other than the signer, such as `setup`, which may run before everything
   * that the configuration names is there.
   */
  readonly onlyRead: boolean;
  readonly allowUnsafeNoopAntiSlashing: boolean;
}

export interface ConfigRule {
  /** specification/operating.md#startup-failures. */
  readonly startupFailure?: number;
  readonly says: string;
  readonly broken: (config: Config, facts: Facts) => readonly ConfigFinding[];
}

export function when(broken: boolean, finding: ConfigFinding): readonly ConfigFinding[] {
  return broken ? [finding] : [];
}

/** Of values that an earlier position has already. */
export function repeated(values: readonly string[]): number[] {
  const seen = new Set<string>();
  return values.flatMap((value, index) => {
    if (seen.has(value)) return [index];
    seen.add(value);
    return [];
  });
}
