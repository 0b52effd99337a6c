// One option of Web3Signer and what becomes of it here: honoured, accepted with a warning that says what happens
// instead, or refused with the reason. There is no fourth way, so no option that the user wrote is silently ignored.

import type { OptionPath } from '../../signer/config/options.ts';

/** The words before the option; an environment variable and a key of the YAML file begin with them. */
export type OptionScope = '' | 'eth2' | 'eth2 export' | 'eth2 import' | 'eth2 watermark-repair';

export interface Honoured {
  readonly kind: 'honoured';
  readonly how: string;
  readonly sets?: OptionPath;
}

export interface Accepted {
  readonly kind: 'accepted';
  /** What happens instead. Completes the option's name to a sentence. */
  readonly instead: string;
  /** Values that say what happens anyway, in lower case: no warning. */
  readonly unless?: readonly string[];
}

interface RefusedOption {
  readonly kind: 'refused';
  /** Completes the option's name to a sentence. */
  readonly why: string;
  readonly remedy: string;
  /** Values that ask for nothing, in lower case. */
  readonly unless?: readonly string[];
}

export interface Web3SignerOption {
  /** Without dashes; the first is what messages and the reference say. */
  readonly names: readonly [string, ...string[]];
  readonly letter?: string;
  readonly scope: OptionScope;
  readonly form: 'text' | 'number' | 'boolean';
  /** Given several times, or a list in the YAML file: joined with commas. */
  readonly isList?: true;
  readonly isOurs?: true;
  /** Web3Signer got it after the revision whose options are listed (docs/reference/web3signer.md). */
  readonly isNewer?: true;
  readonly becomes: Honoured | Accepted | RefusedOption;
}

export function honoured(how: string, sets?: OptionPath): Honoured {
  return sets === undefined ? { kind: 'honoured', how } : { kind: 'honoured', how, sets };
}

export function acceptedOption(instead: string, unless: readonly string[] = []): Accepted {
  return { kind: 'accepted', instead, unless };
}

export function refusedOption(why: string, remedy: string, unless: readonly string[] = []): RefusedOption {
  return { kind: 'refused', why, remedy, unless };
}

export function web3SignerFlag({ names: [name] }: Web3SignerOption): string {
  return `--${name}`;
}

export function variablesOf({ names, scope }: Web3SignerOption): readonly string[] {
  return names.map((name) => ['web3signer', ...words(scope), name].join('_').replaceAll(/[- ]/g, '_').toUpperCase());
}

export function keysOf({ names, scope }: Web3SignerOption): readonly string[] {
  return names.map((name) => [...words(scope), name].join('.'));
}

function words(scope: OptionScope): readonly string[] {
  return scope === '' ? [] : scope.split(' ');
}
