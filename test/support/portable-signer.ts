// `strongroom server` with the portable BLS core, also where the native one is built: the same boot, for tests and
// benchmarks.

import { renderViolations } from '../../common/command-line/violations-report.ts';
import { systemClock } from '../../common/observe/clock.ts';
import { createLogger } from '../../common/observe/logger.ts';
import { loadConfig } from '../../service/config/load.ts';
import { SERVICE_PARTS } from '../../service/parts.ts';
import { sayWarnings } from '../../service/said.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { boot } from '../../signer/boot/boot.ts';
import type { SignerParts } from '../../signer/boot/parts.ts';

const PARTS: SignerParts = {
  ...SERVICE_PARTS,
  openBlsCore: (options) => openBlsCore({ ...options, prefer: 'portable' }),
};

const loaded = loadConfig({ argv: process.argv.slice(3), env: process.env }, { compiledCeremony: false });
if (!loaded.ok) throw new Error(renderViolations(loaded.violations));
const logger = createLogger(loaded.config.logging);
sayWarnings(loaded, logger.module('server'));
const signer = await boot(loaded.config, PARTS, { logger, clock: systemClock });
process.once('SIGTERM', () => {
  void signer.shutDown().then(() => {
    logger.flush();
    process.exit(0);
  });
});
await signer.keysLoaded;
