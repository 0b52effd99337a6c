// Loaded before every test file (vitest.config.ts); its hook is the last one to run. It tells the helpers of tests,
// which programs without vitest use, too, what file is running.

import { afterAll, expect } from 'vitest';
import { killChildren } from '../../rehearsal/signer.ts';

// The user's own git is another one on every machine.
Object.assign(process.env, { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' });
process.env['TEST_FILE'] = expect.getState().testPath;
afterAll(killChildren);
