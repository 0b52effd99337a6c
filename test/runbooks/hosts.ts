// `ssh` and `scp` to the machines that signers run on. A machine is a folder with the few files that pages replace, and
// the services that a world runs for it. Only what pages need is known: copying files, and systemctl.

import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Program, Refused } from './programs.ts';

export type Verb = 'start' | 'stop' | 'restart';

export interface Host {
  readonly folder: string;
  /** @throws Refused when the service does not come up */
  readonly systemctl: (verb: Verb, service: string) => Promise<void>;
}

export type Hosts = ReadonlyMap<string, Host>;

export function sshProgram(hosts: Hosts): Program {
  return async ([name = '', ...command]) => {
    const host = hostOf(hosts, name);
    const [sudo, program, ...args] = command.flatMap((part) => part.split(' '));
    if (sudo !== 'sudo') throw new Refused(`ssh: no stand-in for: ${command.join(' ')}`);
    if (program === 'systemctl' && args.length === 2) {
      const [verb = '', service = ''] = args;
      if (verb !== 'start' && verb !== 'stop' && verb !== 'restart') throw new Refused(`systemctl: ${verb}?`);
      await host.systemctl(verb, service);
    } else if (program === 'cp' && args.length === 2) {
      const [from = '', to = ''] = args;
      copy(join(host.folder, from), join(host.folder, to));
    } else throw new Refused(`ssh: no stand-in for: ${command.join(' ')}`);
    return '';
  };
}

export function scpProgram(hosts: Hosts): Program {
  return async ([from = '', to = '', ...rest], folder) => {
    if (rest.length > 0) throw new Refused('scp: one file at a time');
    const [source, target] = [from, to].map((place) => {
      const [, name, path = ''] = /^([^:/]+):(.*)$/.exec(place) ?? [];
      return name === undefined ? resolve(folder, place) : join(hostOf(hosts, name).folder, path);
    }) as [string, string];
    copy(source, target);
    return '';
  };
}

function copy(from: string, to: string): void {
  if (!existsSync(from)) throw new Refused(`${from}: no such file`, 1);
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
}

function hostOf(hosts: Hosts, name: string): Host {
  const host = hosts.get(name);
  if (host === undefined) throw new Refused(`ssh: could not resolve hostname ${name}`);
  return host;
}
