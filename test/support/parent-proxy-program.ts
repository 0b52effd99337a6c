// The parent proxy as a process of its own, over Unix sockets: `parent-proxy-program.ts DIRECTORY ARGUMENTS…`. The
// program's own main. Every message of its parent process is answered with the bytes that are held after a collection.

import { setImmediate } from 'node:timers/promises';
import { main } from '../../parent-proxy/main.ts';
import { unixTransport } from './unix-transport.ts';

process.on('message', async () => {
  // Buffers lie beside the heap and are let go in the background: until a collection finds nothing more.
  let held = Number.POSITIVE_INFINITY;
  for (let now = await collected(); now < held; now = await collected()) held = now;
  process.send?.(held);
});
process.channel?.unref(); // the proxy ends when it has nothing else to do

const [directory = '', ...argv] = process.argv.slice(2);
await main(argv, () => unixTransport(directory, 'parent'));

async function collected(): Promise<number> {
  for (let collection = 0; collection < 3; collection++) {
    globalThis.gc?.();
    await setImmediate();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
