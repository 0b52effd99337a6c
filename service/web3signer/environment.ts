// The environment variables of Web3Signer: WEB3SIGNER_NAME for global options, WEB3SIGNER_ETH2_NAME for those of eth2.
// Web3Signer takes no notice of other names that begin so; here each is warned of, because a mistyped one leaves its
// option at the default.

import { nearest } from '../../common/command-line/nearest.ts';
import { renderName } from '../../common/command-line/violations.ts';
import type { GivenLayer, GivenOption, OptionWarning } from './given.ts';
import { variablesOf } from './option.ts';
import { WEB3SIGNER_OPTIONS } from './options/options.ts';

export type Web3SignerEnvironment = Readonly<Record<string, string | undefined>>;

/** Kubernetes, "Environment variables" under Service, for a Service whose name begins with web3signer. */
const SERVICE =
  /^WEB3SIGNER(?:_[A-Z0-9_]+)?_(?:SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_[A-Z]+)?)$/;
const LINK = /^WEB3SIGNER(?:_[A-Z0-9_]+)?_PORT$/;

export function readEnvironment(env: Web3SignerEnvironment): GivenLayer {
  const given: GivenOption[] = [];
  const known = new Set<string>();
  for (const option of WEB3SIGNER_OPTIONS) {
    const variables = variablesOf(option);
    for (const variable of variables) known.add(variable);
    const variable = variables.find((name) => env[name] !== undefined);
    if (variable !== undefined) given.push({ option, value: env[variable] ?? '', origin: `environment ${variable}` });
  }
  const warnings = Object.keys(env)
    .filter((name) => name.startsWith('WEB3SIGNER_') && env[name] !== undefined && !known.has(name))
    .filter((name) => !SERVICE.test(name) && !(LINK.test(name) && /^(?:tcp|udp|sctp):\/\//.test(env[name] ?? '')))
    .map((name) => unknownVariable(name, known));
  return { given, violations: [], warnings };
}

function unknownVariable(name: string, known: ReadonlySet<string>): OptionWarning {
  const near = nearest(name, known);
  const advice = near === undefined ? '' : `; did you mean ${near}?`;
  return { at: `environment ${renderName(name)}`, says: `is not the variable of an option, and does nothing${advice}` };
}
