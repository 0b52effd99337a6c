// A clock that is wrong, for programs that run with it: `NODE_OPTIONS=--import=…/faulty-clock.ts`. How far it is off
// stands in a file, in milliseconds, and is read at each look, so that the clock of a running signer can be set. A
// second number in the file is for the monotonic clock, which stood still while its machine did.

import { readFileSync } from 'node:fs';

const file = process.env['FAULTY_CLOCK_FILE'];
const [wall, monotonic] = [Date.now, performance.now.bind(performance)];
if (file !== undefined) {
  const offMs = (index: number): number => Number(readFileSync(file, 'utf8').split(' ')[index] ?? 0);
  Date.now = () => wall() + offMs(0);
  performance.now = () => monotonic() + offMs(1);
}
