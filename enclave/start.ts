// The start inside an enclave, to the end of the process. The image and the measured configuration decide everything.

import { EXIT } from '../common/command-line/exit-codes.ts';
import { endOnBugs, endOnSignals, limitHeapGrowth, liveWorkers } from '../common/command-line/serving.ts';
import { systemClock } from '../common/observe/clock.ts';
import { boot } from '../signer/boot/boot.ts';
import type { SignerParts } from '../signer/boot/parts.ts';
import type { World } from '../signer/boot/world.ts';
import type { Config } from '../signer/config/options.ts';
import { logWarnings } from '../signer/config/warnings.ts';
import { takenByRequest } from '../signer/http/escapes.ts';
import type { CompiledImage } from './compiled.ts';
import { ConfigurationRefused, isDebugMode, measureEnclave } from './measure.ts';
import type { FetchLimits } from './parent/configuration-source.ts';
import { openEnclaveLog } from './parent/log.ts';
import { type EnclaveWays, enclaveParts } from './parts.ts';
import { type EnclavePlatform, openNitroPlatform } from './platform.ts';

interface EnclaveStart {
  readonly configurationPath?: string | undefined;
  readonly patience?: (EnclaveWays['patience'] & { readonly configuration?: FetchLimits }) | undefined;
}

/** @param env what init takes from the kernel's command line (platform.ts) */
export async function runImage(image: CompiledImage, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  let platform: EnclavePlatform;
  try {
    platform = openNitroPlatform(env);
  } catch (error) {
    process.stderr.write(`strongroom: cannot start: ${messageOf(error)}\n`); // only a debug console shows it
    process.exit(EXIT.failed);
  }
  await runEnclave(image, platform);
}

export async function runEnclave(
  image: CompiledImage,
  platform: EnclavePlatform,
  parts: EnclaveStart = {},
): Promise<void> {
  const output = openEnclaveLog(platform.parent);
  // also when logging.level would be silent on the reason
  const startLogger = output.logger({ level: 'info', format: 'json' });
  const log = startLogger.module('server');
  endOnBugs(startLogger, takenByRequest);
  try {
    const { config, warnings, enclave } = await measureEnclave(image, platform, {
      log,
      configurationPath: parts.configurationPath,
      limits: parts.patience?.configuration,
    });
    const logger = output.logger(config.logging, isDebugMode(enclave.measurements));
    logWarnings(warnings, logger.module('server'));
    const ways = { enclave, platform, patience: parts.patience };
    await serve(config, enclaveParts(ways), { logger, clock: systemClock, enclave });
  } catch (error) {
    const refused = error instanceof ConfigurationRefused;
    const violations = refused ? { violations: error.violations } : {};
    log.error({ ...violations, error: refused ? 'the configuration is refused' : messageOf(error) }, 'cannot start');
    await startLogger.end();
    process.exit(refused ? EXIT.configuration : EXIT.failed);
  }
}

async function serve(config: Config, parts: SignerParts, world: World): Promise<void> {
  limitHeapGrowth();
  const workers = liveWorkers();
  const signer = await boot(config, parts, world);
  endOnSignals(signer, workers, world.logger);
  await signer.keysLoaded;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
