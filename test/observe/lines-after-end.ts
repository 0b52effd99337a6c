// A program whose background work logs until it exits, as heartbeats do while a start fails.

import { createLogger } from '../../common/observe/logger.ts';

const logger = createLogger({ level: 'info', format: 'json' });
const log = logger.module('server');
log.info({}, 'last');
const end = logger.end();
const soon = (): void => {
  log.warn({}, 'too late');
  setImmediate(soon);
};
soon();
await end;
process.exit();
