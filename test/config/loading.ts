// How the configuration tests load: a file given as text, the rest as the server would see it.

import type { Violation } from '../../common/command-line/violations.ts';
import { renderViolations } from '../../common/command-line/violations-report.ts';
import { type Build, type LoadedConfiguration, loadConfig } from '../../service/config/load.ts';
import type { Config } from '../../signer/config/options.ts';

export interface Given {
  readonly yaml?: string | Uint8Array;
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly build?: Build;
}

export function load({ yaml, argv = [], env = {}, build = { compiledCeremony: false } }: Given): LoadedConfiguration {
  if (yaml === undefined) return loadConfig({ argv, env }, build);
  return loadConfig({ argv: ['-c', 'config.yaml', ...argv], env, readFile: () => Buffer.from(yaml) }, build);
}

export function loadGood(given: Given): Config {
  const loaded = load(given);
  if (!loaded.ok) throw new Error(renderViolations(loaded.violations));
  return loaded.config;
}

export function violationsOf(given: Given): readonly Violation[] {
  const loaded = load(given);
  return loaded.ok ? [] : loaded.violations;
}

export function sentencesOf(given: Given): string[] {
  return violationsOf(given).map(({ path, problem }) => `${path} ${problem}`);
}

export function keyArn(index: number, region = 'eu-central-1'): string {
  return `arn:aws:kms:${region}:111122223333:key/1234abcd-12ab-34cd-56ef-${String(index).padStart(12, '0')}`;
}

export function multiRegionArn(index: number, region: string): string {
  return `arn:aws:kms:${region}:111122223333:key/mrk-${String(index).padStart(32, '0')}`;
}
