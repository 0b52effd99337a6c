// The options of Web3Signer that the user gave: text with the place where it was written. Values never appear in
// messages: some are secrets.

import type { Violation } from '../../common/command-line/violations.ts';
import type { Web3SignerOption } from './option.ts';

export interface GivenOption {
  readonly option: Web3SignerOption;
  readonly value: string;
  /** `flag --network`, `environment WEB3SIGNER_ETH2_NETWORK`, `config.yaml line 3`. */
  readonly origin: string;
}

/** What the user should know of an option that does not keep the signer from starting. */
export interface OptionWarning {
  readonly at: string;
  /** Completes it to a sentence, and says what happens. */
  readonly says: string;
}

export interface GivenLayer {
  readonly given: readonly GivenOption[];
  readonly violations: readonly Violation[];
  readonly warnings: readonly OptionWarning[];
}

/** By the name of the option, which no two share. */
export type GivenOptions = ReadonlyMap<string, GivenOption>;

/** @param layers the highest first */
export function merged(layers: readonly GivenLayer[]): GivenOptions {
  return new Map(
    layers.toReversed().flatMap(({ given }) => given.map((one): [string, GivenOption] => [one.option.names[0], one])),
  );
}

export function isOn(given: GivenOptions, name: string): boolean {
  return given.get(name)?.value.trim().toLowerCase() === 'true';
}
