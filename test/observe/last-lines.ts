// A program that ends while a write of its log is under way: what came after that write began is in the log, too.

import { createLogger, standardOutput } from '../../common/observe/logger.ts';

const destination = standardOutput();
const logger = createLogger({ level: 'info', format: 'json' }, destination);
const log = logger.module('audit');
log.info({}, 'under way');
void destination.confirmed(); // its write begins
log.info({}, 'after it');
await logger.end();
process.exit(0);
