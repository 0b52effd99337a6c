// The configuration of an ordinary host: arguments, environment and file as layers, in order of precedence
// (specification/operating.md#configuration). signer/config/load.ts judges them. Exits nothing and writes nothing: the
// program prints the violations and exits 78 (specification/operating.md#startup-failures).

import { readFileSync } from 'node:fs';
import type { Ceremony } from '../../ceremony/definition.ts';
import { adviceOn } from '../../common/command-line/file-faults.ts';
import type { Violation } from '../../common/command-line/violations.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { EMPTY_LAYER, readConfigurationFile, refusedLayer } from '../../signer/config/layers/file.ts';
import type { Layer } from '../../signer/config/layers/layer.ts';
import { type ConfigurationRead, readLayers } from '../../signer/config/load.ts';
import { type LayerEnvironment, readEnvironmentLayer, unknownVariables } from './environment-layer.ts';
import { type FlagLayer, readFlags } from './flag-layer.ts';
import { SERVICE_RULES, SERVICE_WARNINGS } from './rules.ts';
import { readSecretFile } from './secret-file.ts';

export interface LoadInput {
  readonly argv: readonly string[];
  readonly env: LayerEnvironment;
  readonly readFile?: (path: string) => Uint8Array;
}

export interface Build {
  /** The ceremony of the image that the configuration is for; false for a service. */
  readonly compiledCeremony: Ceremony | false;
  /** The configuration is looked at and not run, as with `--check`: it may be one for an image. */
  readonly onlyRead?: boolean;
  /** No client will be authenticated: tokens in unset environment variables are no fault then. */
  readonly withoutTokens?: boolean;
}

export type LoadedConfiguration =
  | (Extract<ConfigurationRead, { readonly ok: true }> & {
      readonly check: boolean;
      readonly offline: boolean;
      readonly decrypt: boolean;
      readonly isEmpty: boolean;
      readonly configPath: string | undefined;
      /** Variables that look like options and were injected by Kubernetes. */
      readonly ignoredVariables: readonly string[];
    })
  | { readonly ok: false; readonly violations: readonly Violation[] };

export function loadConfig(input: LoadInput, build: Build): LoadedConfiguration {
  const flags = readFlags(input.argv);
  const file = readFileLayer(flags, input.readFile ?? ((path) => readFileSync(path)));
  let ignoredVariables: readonly string[] = [];
  const layers = [flags, readEnvironmentLayer(input.env), file];
  const isEmpty = flags.configPath === undefined && layers.every(saysNothing);
  const read = readLayers(layers, {
    rules: SERVICE_RULES,
    warnings: SERVICE_WARNINGS,
    references: { env: input.env, readFile: readSecretFile },
    compiledCeremony: build.compiledCeremony,
    withoutTokens: build.withoutTokens === true,
    runs: !flags.check && build.onlyRead !== true,
    onlyRead: build.onlyRead === true,
    allowUnsafeNoopAntiSlashing: flags.allowUnsafeNoopAntiSlashing,
    strayVariables: (referenced) => {
      const unknown = unknownVariables(input.env, referenced);
      ignoredVariables = unknown.ignored;
      return unknown.violations;
    },
  });
  const { check, offline, decrypt, configPath } = flags;
  return read.ok ? { ...read, check, offline, decrypt, isEmpty, configPath, ignoredVariables } : read;
}

function saysNothing({ settings, sections, members = [] }: Layer): boolean {
  return settings.size + sections.size + members.length === 0;
}

function readFileLayer({ configPath }: FlagLayer, readFile: (path: string) => Uint8Array): Layer {
  if (configPath === undefined) return EMPTY_LAYER;
  try {
    return readConfigurationFile(readFile(configPath), configPath);
  } catch (error) {
    const code = errorCode(error);
    const problem = `cannot be read${code === undefined ? '' : ` (${code})`}`;
    const remedy = adviceOn(code ?? '') ?? 'name a file that this user may read';
    return refusedLayer([{ path: configPath, problem, remedy, origin: 'flag --config' }]);
  }
}
