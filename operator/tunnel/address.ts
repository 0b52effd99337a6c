// Where the tunnel listens: on this machine alone, unless it is told otherwise by a flag that says what that means.

import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { bounded } from '../../common/command-line/text.ts';
import { UsageFailure } from '../exit.ts';

interface TunnelAddress {
  readonly host: string;
  readonly port: number;
  readonly loopback: boolean;
}

export function readListenAddress(written: string, allowOthers: boolean): TunnelAddress {
  const [, name = '', digits = ''] = /^(.+):(\d{1,5})$/.exec(written) ?? [];
  const host = name === 'localhost' ? '127.0.0.1' : name.replace(/^\[(.*)\]$/, '$1');
  const port = Number(digits);
  if ((!isIPv4(host) && !isIPv6(host)) || digits === '' || port > 65_535) {
    throw new UsageFailure(
      `--listen ${bounded(written, 60)} is not an address and a port`,
      'for example 127.0.0.1:9000',
    );
  }
  const loopback = isLoopback(host);
  if (!loopback && !allowOthers) {
    throw new UsageFailure(
      `--listen ${bounded(written, 60)} can be reached from other machines, and whoever reaches it uses the token`,
      'listen on 127.0.0.1, or say --unsafe-listen-publicly where nobody else can reach it',
    );
  }
  return { host, port, loopback };
}

function isLoopback(host: string): boolean {
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(host, isIPv4(host) ? 'ipv4' : 'ipv6');
}
