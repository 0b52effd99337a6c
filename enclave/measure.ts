// The start inside an image, up to the configuration (specification/enclave.md#measured-configuration). Only measured
// input decides.

import { createHash, X509Certificate } from 'node:crypto';
import { type Ceremony, ceremonyDigest, parseCeremony } from '../ceremony/definition.ts';
import { CEREMONY_PCR, CONFIGURATION_PCR } from '../common/attestation/contract.ts';
import type { Violation } from '../common/command-line/violations.ts';
import { extendedOnce, PCR_BYTES } from '../common/formats/register.ts';
import type { Log } from '../common/observe/log.ts';
import { step } from '../signer/boot/step.ts';
import type { Enclave } from '../signer/boot/world.ts';
import { readConfigurationFile } from '../signer/config/layers/file.ts';
import { type ConfigurationRead, readLayers } from '../signer/config/load.ts';
import type { Config } from '../signer/config/options.ts';
import { RULES } from '../signer/config/rules/rules.ts';
import { type ConfigWarning, WARNINGS } from '../signer/config/warnings.ts';
import { type AuthoritiesOf, authoritiesOf, type NamedAuthorities } from '../signer/tee/authorities.ts';
import {
  type Measurements,
  type Nsm,
  type NsmCallCount,
  type NsmDescription,
  type NsmOperation,
  type NsmOutcome,
  REPORTED_PCRS,
} from '../signer/tee/nsm.ts';
import { CONFIGURATION_PATH, type CompiledImage } from './compiled.ts';
import { createNsm } from './nsm/client.ts';
import { type FetchLimits, fetchConfiguration, readBakedConfiguration } from './parent/configuration-source.ts';
import type { EnclavePlatform } from './platform.ts';

interface MeasuringParts {
  readonly log: Log;
  readonly configurationPath?: string | undefined;
  readonly limits?: FetchLimits | undefined;
}

export class ConfigurationRefused extends Error {
  readonly violations: readonly Violation[];

  constructor(violations: readonly Violation[]) {
    super('the configuration is refused');
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
  { log, configurationPath = CONFIGURATION_PATH, limits }: MeasuringParts,
): Promise<Measured> {
  const calls = countNsmCalls();
  const nsm = createNsm(platform.nsmDevice, { onCall: calls.add, signsNothing: platform.unsignedEvidence });
  const { moduleId } = await step('Nitro Secure Module', () => describeNsm(nsm));
  log.info({ module_id: moduleId, configuration: image.configuration }, 'starting in an enclave');
  const ceremony = await step('ceremony', () => parseCeremony(image.ceremony));
  const bytes = await step('configuration', () =>
    image.configuration === 'baked'
      ? readBakedConfiguration(configurationPath)
      : fetchConfiguration(platform.parent, { log, limits }),
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
  const name = image.configuration === 'baked' ? CONFIGURATION_PATH : 'the configuration from the parent,';
  const authorities = authoritiesOf(image.authorities);
  const compiled = { compiledCeremony: ceremony, compiledAuthorities: authorities };
  const read = readMeasuredConfiguration(bytes, { name, ...compiled });
  if (!read.ok) throw new ConfigurationRefused(read.violations);
  const { config, warnings } = read;
  tellAuthorities(image, config, log);
  return {
    config,
    warnings,
    enclave: {
      nsm,
      documents: platform.documents,
      ceremony,
      authorities,
      measurements,
      configurationDigest,
      nsmCalls: calls.all,
    },
  };
}

const DEBUG_MODE =
  'THE ENCLAVE RUNS IN DEBUG MODE: its console is readable, PCR0 to PCR2 are zero, and neither the operator’s CLI nor a key policy accepts it';

const UNSIGNED_EVIDENCE =
  'THE IMAGE STATES THAT ITS EVIDENCE IS UNSIGNED (strongroom.evidence=unsigned): it is for tests; no client and no key policy believes it';

/** What opens the shares of the master key, and what keeps its record, in any partition. */
const HOST_OF_AWS = /^(?:dynamodb|kms)\./;

function tellAuthorities({ authorities }: CompiledImage, config: Config, log: Log): void {
  for (const [hostname, added] of Object.entries(authorities)) {
    const sha256 = added.map((pem) => new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase());
    const said = 'the image names the authorities that alone vouch for this host';
    if (!HOST_OF_AWS.test(hostname)) log.info({ hostname, sha256 }, said);
    else log.warn({ hostname, sha256 }, `${said}: who holds one can answer in its place, and plant a master key`);
  }
  for (const hostname of undeclaredHosts(authorities, config))
    log.warn({ hostname }, 'the image has authorities for a host that tee.nitro.egress does not declare');
}

export function undeclaredHosts(authorities: NamedAuthorities, config: Config): readonly string[] {
  const declared = new Set(config.tee.nitro.egress.endpoints.map(({ hostname }) => hostname));
  return Object.keys(authorities).filter((hostname) => !declared.has(hostname));
}

/** @param name what messages call the file */
export function readMeasuredConfiguration(
  bytes: Uint8Array,
  {
    name,
    ...compiled
  }: { readonly name: string; readonly compiledCeremony: Ceremony; readonly compiledAuthorities: AuthoritiesOf },
): ConfigurationRead {
  return readLayers([readConfigurationFile(bytes, name)], {
    rules: RULES,
    warnings: WARNINGS,
    references: undefined,
    ...compiled,
    withoutTokens: false,
    runs: true,
    allowUnsafeNoopAntiSlashing: false,
  });
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

/** Zero in debug mode, whatever the image is (specification/evidence.md#checks, debug). */
const IMAGE_PCRS = [0, 1, 2] as const;
const NEEDED_PCRS = 18;
const UNUSED = Buffer.alloc(PCR_BYTES);

export async function describeNsm(nsm: Nsm): Promise<NsmDescription> {
  const description = await nsm.describe();
  if (description.digest !== 'SHA384') throw new Error(`the NSM measures with ${description.digest}, not with SHA384`);
  if (description.maxPcrs < NEEDED_PCRS) {
    throw new Error(`the NSM has ${description.maxPcrs} registers, and ${NEEDED_PCRS} are needed`);
  }
  return description;
}

/** @param digest SHA-384 @throws Error when the register was used before, or does not hold what it was given */
export async function measureOnce(nsm: Nsm, index: number, digest: Uint8Array): Promise<void> {
  const before = await nsm.describePcr(index);
  if (before.locked || !before.value.equals(UNUSED)) {
    throw new Error(
      `PCR${index} was ${before.locked ? 'locked' : 'extended'} before this start: only the first start in an enclave is measured; end the enclave and run it again`,
    );
  }
  await nsm.extendPcr(index, digest);
  await nsm.lockPcr(index);
  const after = await nsm.describePcr(index);
  if (!after.locked || !after.value.equals(extendedOnce(digest))) {
    throw new Error(`PCR${index} does not hold what it was extended with: the NSM cannot be relied on`);
  }
}

export async function readMeasurements(nsm: Nsm): Promise<Measurements> {
  const measurements: Record<string, string> = {};
  for (const index of REPORTED_PCRS) measurements[index] = (await nsm.describePcr(index)).value.toString('hex');
  return measurements;
}

/** No verifier believes such an enclave: in its documents PCR0 to PCR2 are zeros. */
export function isDebugMode(measurements: Measurements): boolean {
  const zero = UNUSED.toString('hex');
  return IMAGE_PCRS.every((index) => measurements[index] === zero);
}
