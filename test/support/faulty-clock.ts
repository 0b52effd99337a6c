// A clock that is wrong, for programs that run with it: `NODE_OPTIONS=--import=…/faulty-clock.ts`. How far it is off
// stands in a file, in milliseconds, and is read at each look, so that the clock of a running signer can be set. A
// second number in the file is for the monotonic clock, which stood still while its machine did.
//
// The kernel of such a machine goes by the same clock: with a third word `synchronised` or `unsynchronised` in the file
// it says so, and says nothing without.

import { readFileSync } from 'node:fs';
import Module from 'node:module';

const file = process.env['FAULTY_CLOCK_FILE'];
const [wall, monotonic] = [Date.now, performance.now.bind(performance)];
if (file !== undefined) {
  const words = (): string[] => readFileSync(file, 'utf8').trim().split(' ');
  Date.now = () => wall() + Number(words()[0] ?? 0);
  performance.now = () => monotonic() + Number(words()[1] ?? 0);
  const kernelClock = () => {
    const [, , word] = words();
    return word === undefined ? undefined : { milliseconds: Date.now(), isSynchronised: word === 'synchronised' };
  };
  const { _extensions: loaders } = Module as unknown as { _extensions: Record<string, Loader> };
  const load = loaders['.node'];
  loaders['.node'] = (module, path) => {
    load?.(module, path);
    if (path.endsWith('strongroom.node')) Object.assign(module.exports as object, { kernelClock });
  };
}

type Loader = (module: { exports: unknown }, path: string) => void;
