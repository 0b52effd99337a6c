// A clock that is wrong, for programs that run with it: `NODE_OPTIONS=--import=…/faulty-clock.ts`. How far it is off
// stands in a file, in milliseconds, and is read at each look, so that the clock of a running signer can be set.

import { readFileSync } from 'node:fs';

const file = process.env['FAULTY_CLOCK_FILE'];
const real = Date.now;
if (file !== undefined) Date.now = () => real() + Number(readFileSync(file, 'utf8'));
