// Loaded before every test file (vitest.config.ts); its hook is the last one to run.

import { afterAll } from 'vitest';
import { killChildren } from '../../tools/rehearsal/signer.ts';

afterAll(killChildren);
