// docs/architecture.md: no other path to the network exists in the CLI than operator/connect.ts, so that whoever reads
// it knows whom a token can reach. And no flag skips a check.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { walkDescriptions } from '../../common/command-line/command.ts';
import { describeGroup } from '../../common/command-line/program.ts';
import { OPERATOR_TREE } from '../../operator/tree.ts';

const ROOT = join(import.meta.dirname, '../../operator');
/** Those of every command. */
const FLAGS = [...walkDescriptions(await describeGroup(OPERATOR_TREE))].flatMap(({ description }) =>
  Object.keys(description.flags ?? {}),
);
const NETWORK = /\bfrom '(?:node:)?(net|tls|https?|http2|dgram|dns|undici|child_process|worker_threads)(?:\/[a-z]+)?'/g;

it('only connect.ts opens connections', () => {
  const users = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const text = readFileSync(join(ROOT, name), 'utf8');
      const found = [...text.matchAll(NETWORK)].map(([, module]) => `${name} ${module}`);
      return /\bfetch\(|\bWebSocket\b|\bimport\((?!'\.{1,2}\/)/.test(text) ? [...found, `${name} other`] : found;
    });
  // HTTP of the commands, of the nonce route and of the tunnel goes over connections of operator/connect.ts.
  // operator/tunnel/listener.ts listens, and operator/tunnel/address.ts reads addresses.
  expect(users.sort()).toEqual([
    'attestation/fresh-document.ts http',
    'attestation/fresh-document.ts net',
    'attestation/peer-evidence.ts tls',
    'client.ts http',
    'client.ts net',
    'connect.ts net',
    'connect.ts tls',
    'distributed/combiner.ts http',
    'distributed/participants.ts http',
    'distributed/question.ts http',
    'tunnel/address.ts net',
    'tunnel/forward.ts http',
    'tunnel/headers.ts http',
    'tunnel/keep-warm.ts http',
    'tunnel/keep-warm.ts net',
    'tunnel/lease.ts net',
    'tunnel/listener.ts http',
    'tunnel/listener.ts net',
    'tunnel/pool.ts net',
    'tunnel/refusals.ts http',
    'tunnel/tunnel.ts http',
  ]);
});

it('what speaks HTTP is given its connections; the others name types, or read addresses', () => {
  for (const name of ['client.ts', 'attestation/fresh-document.ts', 'tunnel/forward.ts', 'tunnel/keep-warm.ts']) {
    const requests = textOf(name).match(/httpRequest\(/g) ?? [];
    const given = textOf(name).match(/createConnection: \(\) => (socket|lease\.socket)/g) ?? [];
    expect([requests.length, given.length]).toEqual([1, 1]);
  }
  const imports = (name: string): string[] => textOf(name).match(/^import .* from 'node:(net|tls|http)';$/gm) ?? [];
  // That of the combiner is given an agent, whose connections are those of operator/connect.ts, too.
  const participants = textOf('distributed/participants.ts');
  expect(participants.match(/httpRequest\(\{\n.* agent: this\.#agent,|this\.#agent = keptConnections\(/g)).toHaveLength(
    2,
  );
  const typesOnly = [
    ...['attestation/peer-evidence.ts', 'distributed/combiner.ts', 'tunnel/headers.ts', 'tunnel/lease.ts'],
    ...['tunnel/pool.ts', 'tunnel/refusals.ts', 'tunnel/tunnel.ts'],
  ];
  for (const name of typesOnly) for (const line of imports(name)) expect(line).toMatch(/^import type /);
  expect(imports('tunnel/address.ts')).toEqual(["import { BlockList, isIPv4, isIPv6 } from 'node:net';"]);
  expect(imports('tunnel/listener.ts')).toEqual([
    "import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';",
    "import type { AddressInfo } from 'node:net';",
  ]);
});

it('no flag of any command skips the verification of the signer', () => {
  expect(FLAGS).toContain('signer-url');
  // The one that is unsafe is about who may use the tunnel, not about whom it leads to.
  const unsafe = FLAGS.filter((flag) => /insecure|skip|no-verify|unsafe/.test(flag));
  expect(unsafe).toEqual(['unsafe-listen-publicly']);
});

it('no flag, variable or file names the authority of attestation documents', () => {
  expect(FLAGS).toContain('pcrs');
  // That of a message, which receipts are searched for.
  expect(FLAGS.filter((flag) => /root|provider|authority|fingerprint/.test(flag))).toEqual(['signing-root']);
  const providers = ['operator', 'common/attestation']
    .flatMap((folder) =>
      readdirSync(join(ROOT, '..', folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => /rootSha256:/.test(textOf(join('..', name))));
  expect(providers).toEqual(['common/attestation/contract.ts']); // the interface, and the one there is
});

function textOf(name: string): string {
  return readFileSync(join(ROOT, name), 'utf8');
}
