// The start inside an enclave image, up to the configuration. It describes the NSM, gets the configuration's bytes,
// measures them and the ceremony, and only then parses them (specification/enclave.md#measured-configuration). There
// are no arguments and no environment variables: only measured input decides.

import { createHash } from 'node:crypto';
import { type Ceremony, ceremonyDigest, parseCeremony } from '../../../ceremony/definition.ts';
import { renderViolations, type Violation } from '../../../command-line/violations.ts';
import type { Log } from '../../../observe/log.ts';
import { CEREMONY_PCR, CONFIGURATION_PCR } from '../../api/attestation.ts';
import { CONFIGURATION_PATH, type CompiledImage } from '../../compiled.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/options.ts';
import type { ConfigWarning } from '../../config/warnings.ts';
import { parsePostgresUrl } from '../../slashing/postgres/connection/address.ts';
import { describeNsm, isDebugMode, type Measurements, measureOnce, readMeasurements } from '../../tee/measure.ts';
import { createNsm, type NsmOutcome } from '../../tee/nsm/client.ts';
import type { NsmOperation } from '../../tee/nsm/messages.ts';
import type { Nsm } from '../../tee/nsm/nsm.ts';
import { type FetchLimits, fetchConfiguration, readBakedConfiguration } from '../../tee/parent/configuration-source.ts';
import type { Patience } from '../../tee/patience.ts';
import type { EnclavePlatform } from '../../tee/platform.ts';
import { step } from '../step.ts';

/** What a signer in an enclave has beside its configuration. */
export interface Enclave {
  readonly nsm: Nsm;
  readonly platform: EnclavePlatform;
  readonly ceremony: Ceremony;
  readonly measurements: Measurements;
  /** SHA-384 of the configuration's bytes, hex. */
  readonly configurationDigest: string;
  /** Calls of the NSM since the start. */
  readonly nsmCalls: () => readonly NsmCallCount[];
  readonly credentialsPatience: Patience | undefined;
}

export interface NsmCallCount {
  readonly operation: NsmOperation;
  readonly outcome: NsmOutcome;
  readonly count: number;
}

export interface EnclaveParts {
  readonly log: Log;
  /** Where a baked configuration lies; inside an image `CONFIGURATION_PATH`. */
  readonly configurationPath?: string | undefined;
  /** How long the start waits for its parent; as the modules say unless given. */
  readonly patience?: { readonly configuration?: FetchLimits; readonly credentials?: Patience } | undefined;
}

/** The configuration is measured, and cannot be used. */
export class ConfigurationRefused extends Error {
  readonly violations: readonly Violation[];

  constructor(violations: readonly Violation[]) {
    super(renderViolations(violations));
    this.name = 'ConfigurationRefused';
    this.violations = violations;
  }
}

export interface Measured {
  readonly config: Config;
  readonly warnings: readonly ConfigWarning[];
  readonly enclave: Enclave;
}

/** @throws StartupError; ConfigurationRefused after the measurement */
export async function measureEnclave(
  image: CompiledImage,
  platform: EnclavePlatform,
  { log, configurationPath = CONFIGURATION_PATH, patience }: EnclaveParts,
): Promise<Measured> {
  const calls = countNsmCalls();
  const nsm = createNsm(platform.nsmDevice, { onCall: calls.add, signsNothing: platform.unsignedEvidence });
  const { moduleId } = await step('Nitro Secure Module', () => describeNsm(nsm));
  log.info({ module_id: moduleId, configuration: image.configuration }, 'starting in an enclave');
  const ceremony = await step('ceremony', () => parseCeremony(image.ceremony));
  const bytes = await step('configuration', () =>
    image.configuration === 'baked'
      ? readBakedConfiguration(configurationPath)
      : fetchConfiguration(platform.parent, { log, limits: patience?.configuration }),
  );
  const digest = createHash('sha384').update(bytes).digest();
  const measurements = await step('measurement', async () => {
    await measureOnce(nsm, CONFIGURATION_PCR, digest);
    await measureOnce(nsm, CEREMONY_PCR, ceremonyDigest(ceremony));
    return readMeasurements(nsm);
  });
  const configurationDigest = digest.toString('hex');
  log.info({ configuration_digest: configurationDigest, ...registers(measurements) }, 'measured');
  if (isDebugMode(measurements)) log.warn({}, DEBUG_MODE);
  if (nsm.signsNothing) log.warn({}, UNSIGNED_EVIDENCE);
  const { config, warnings } = readConfiguration(bytes, image, ceremony);
  warnOfSecrets(config, log);
  return {
    config,
    warnings,
    enclave: {
      nsm,
      platform,
      ceremony,
      measurements,
      configurationDigest,
      nsmCalls: calls.all,
      credentialsPatience: patience?.credentials,
    },
  };
}

const DEBUG_MODE =
  'THE ENCLAVE RUNS IN DEBUG MODE: its console is readable, PCR0 to PCR2 are zero, and neither the operator’s CLI nor a key policy accepts it';

const UNSIGNED_EVIDENCE =
  'THE IMAGE STATES THAT ITS EVIDENCE IS UNSIGNED (strongroom.evidence=unsigned): it is for tests; no client and no key policy believes it';

const STATIC_AUTH =
  'static_auth is in the configuration, which the parent reads: it can do whatever these tokens, and requests without one, may do, ' +
  'and none of them has a lifetime; signer_state keeps tokens from it';

const DATABASE_PASSWORD =
  'a password is in the configuration, which the parent reads: it can do in the database whatever the signer may do there';

/** The configuration is no place for secrets, baked or fetched: it passes the parent, and lies in the image. */
function warnOfSecrets({ static_auth: { tokens, anonymous }, anti_slashing }: Config, log: Log): void {
  const options = [
    ...(tokens.length > 0 ? ['static_auth.tokens[].secret'] : []),
    ...(anonymous.policies.length > 0 ? ['static_auth.anonymous.policies'] : []),
  ];
  if (options.length > 0) log.warn({ options }, STATIC_AUTH);
  const { backend, url } = anti_slashing;
  const address =
    backend === 'postgres' && url !== undefined ? parsePostgresUrl(url.reveal().toString('utf8')) : undefined;
  if (address?.kind === 'address' && address.password !== '') {
    log.warn({ options: ['anti_slashing.url'] }, DATABASE_PASSWORD);
  }
}

/** The file layer alone: no arguments, no environment. */
function readConfiguration(
  bytes: Buffer,
  { configuration }: CompiledImage,
  compiledCeremony: Ceremony,
): Pick<Measured, 'config' | 'warnings'> {
  const name = configuration === 'baked' ? CONFIGURATION_PATH : 'the configuration from the parent,';
  const loaded = loadConfig({ argv: ['-c', name], env: {}, readFile: () => bytes }, { compiledCeremony });
  if (!loaded.ok) throw new ConfigurationRefused(loaded.violations);
  return loaded;
}

function registers(measurements: Measurements): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(measurements).map(([index, value]) => [`pcr${index}`, value]));
}

function countNsmCalls() {
  const counts = new Map<string, { operation: NsmOperation; outcome: NsmOutcome; count: number }>();
  return {
    add: (operation: NsmOperation, outcome: NsmOutcome): void => {
      const name = `${operation} ${outcome}`;
      const entry = counts.get(name) ?? { operation, outcome, count: 0 };
      entry.count += 1;
      counts.set(name, entry);
    },
    all: (): readonly NsmCallCount[] => [...counts.values()],
  };
}
