// The parent proxy as a process of its own, over Unix sockets: `parent-proxy-program.ts DIRECTORY ARGUMENTS…`. The program's own main.

import { main } from '../../parent-proxy/main.ts';
import { unixTransport } from './unix-transport.ts';

const [directory = '', ...argv] = process.argv.slice(2);
await main(argv, () => unixTransport(directory, 'parent'));
