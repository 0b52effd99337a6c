// `strongroom server` with the portable BLS core, also where the native one is built: the same boot, for tests and
// benchmarks.

import { renderViolations } from '../../command-line/violations.ts';
import { boot } from '../../enclave/boot/boot.ts';
import { sayWarnings } from '../../enclave/commands/check.ts';
import { loadConfig } from '../../enclave/config/load.ts';
import { systemClock } from '../../observe/clock.ts';
import { createLogger } from '../../observe/logger.ts';

const loaded = loadConfig({ argv: process.argv.slice(3), env: process.env }, { compiledCeremony: false });
if (!loaded.ok) throw new Error(renderViolations(loaded.violations));
const logger = createLogger(loaded.config.logging);
sayWarnings(loaded, logger.module('server'));
const signer = await boot(loaded.config, { logger, clock: systemClock, blsCore: 'portable' });
process.once('SIGTERM', () => {
  void signer.shutDown().then(() => {
    logger.flush();
    process.exit(0);
  });
});
await signer.keysLoaded;
