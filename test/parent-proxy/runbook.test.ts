// What the runbook of the parent tells a person to do, done: its jq lines on a log as it is, its rules for the metadata
// service in a network of their own, and the settings it lists.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lacking, skipped } from '../support/needs.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DEPLOY = join(ROOT, 'parent-proxy/deploy');
const deployed = (name: string): string => readFileSync(join(DEPLOY, name), 'utf8');
const README = deployed('README.md');

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-runbook-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(lacking('jq'))('the log', () => {
  const LINES = [
    'Started strongroom parent proxy.',
    '{"level":"info","msg":"ready"}',
    '{"source":"enclave","record":{"level":"info","msg":"unsealed"}}',
    '42',
    '"a text"',
    '{"source":"enclave","record":',
    '{"source":"enclave","record":{"level":"warn","msg":"last"}}',
  ];
  const commands = [...README.matchAll(/^journalctl .* -o cat \| (jq .*)$/gm)].map(([, command = '']) => command);

  it('is told apart by the runbook’s lines, whatever stands between', () => {
    const file = join(folder, 'log');
    writeFileSync(file, `${LINES.join('\n')}\n`);
    const told = commands.map((command) =>
      execFileSync('sh', ['-c', `${command.replace(/^jq/, 'jq -c')} < ${file}`], { encoding: 'utf8' })
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    );
    expect(told).toEqual([
      [
        { level: 'info', msg: 'unsealed' },
        { level: 'warn', msg: 'last' },
      ],
      [{ level: 'info', msg: 'ready' }],
      ['Started strongroom parent proxy.', '{"source":"enclave","record":'],
    ]);
  });
});

function noNetwork(): string | undefined {
  const lacks = lacking('Linux', 'root', 'unshare', 'ip', 'nft');
  if (lacks !== undefined || spawnSync('unshare', ['-n', 'ip', 'link']).status === 0) return lacks;
  return skipped('a kernel that gives root a network of its own');
}

it.skipIf(noNetwork())('the metadata service is for root and strongroom, by IPv4 and IPv6', () => {
  const STRONGROOM = 4711;
  const file = join(folder, 'metadata.nft');
  writeFileSync(file, deployed('metadata.nft').replaceAll('"strongroom"', String(STRONGROOM)));
  const asker = join(ROOT, 'test/support/metadata-asker.ts');
  const said = execFileSync(
    'unshare',
    ['-n', join(ROOT, 'bin/pinned-node'), asker, file, '0', String(STRONGROOM), '4712'],
    { encoding: 'utf8' },
  );
  const both = ['169.254.169.254', 'fd00:ec2::254'];
  expect(JSON.parse(said)).toEqual({ 0: both, [STRONGROOM]: both, 4712: [] });
});

it('every setting that run-enclave reads is in the runbook, in its help and in enclave.env', () => {
  const script = deployed('run-enclave');
  const read = new Set([...script.matchAll(/\$\{(STRONGROOM_\w+):-/g)].map(([, name = '']) => name));
  expect([...read].sort()).toEqual([
    'STRONGROOM_ALLOCATOR_FILE',
    'STRONGROOM_CPU_COUNT',
    'STRONGROOM_EIF_PATH',
    'STRONGROOM_ENCLAVE_CID',
    'STRONGROOM_MEMORY_MIB',
    'STRONGROOM_POLL_SECONDS',
  ]);
  const help = spawnSync('sh', [join(DEPLOY, 'run-enclave'), '--help'], { encoding: 'utf8' }).stdout;
  for (const name of read) {
    expect(README).toContain(`\`${name}\``);
    expect(help).toContain(name);
    expect(deployed('enclave.env')).toContain(`${name}=`);
  }
});
