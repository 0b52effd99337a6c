// Runs in a network namespace of its own (`unshare -n`), as root: listens where the metadata service of an instance
// would, loads rules, and says who gets through. Arguments: the file of rules, then user ids. Output: JSON.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const ADDRESSES = ['169.254.169.254', 'fd00:ec2::254'];
const PORT = 80;

const [rules = '', ...users] = process.argv.slice(2);
const run = (program: string, ...args: string[]) => execFileSync(program, args);

run('ip', 'link', 'set', 'lo', 'up');
for (const address of ADDRESSES) {
  const isV6 = address.includes(':');
  run('ip', 'addr', 'add', `${address}/${isV6 ? 128 : 32}`, 'dev', 'lo', ...(isV6 ? ['nodad'] : []));
  await once(createServer((socket) => socket.end()).listen(PORT, address), 'listening');
}
run('nft', '-f', rules);
run('nft', '-f', rules); // loading them again replaces them

const reached: Record<string, readonly string[]> = {};
for (const user of users) {
  process.seteuid?.(Number(user)); // whoever makes a socket owns it
  const outcomes = await Promise.all(ADDRESSES.map(outcomeOf));
  process.seteuid?.(0);
  reached[user] = ADDRESSES.filter((_, at) => outcomes[at] === 'connected');
}
process.stdout.write(JSON.stringify(reached));
process.exit(0);

async function outcomeOf(host: string): Promise<string> {
  const socket = connect({ host, port: PORT });
  try {
    await once(socket, 'connect');
    return 'connected';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'failed';
  } finally {
    socket.destroy();
  }
}
