// `make conformance URL=… [FILE=…]` (docs/guides/conformance.md). It makes slashable requests, and a bad signer signs
// them: it is for test keys alone.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ArgumentsError, readArguments } from '../../common/command-line/arguments.ts';
import { renderTable } from '../../common/command-line/table.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { PUBLIC_NETWORKS } from '../../signer/api/network-table.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import type { Chain } from '../../test/expected/expected-root.ts';
import { runConformance, type SignerUnderTest, tableOf } from './run.ts';

const VECTORS = join(import.meta.dirname, '../../../shared/vectors');
const DEFAULT_FILE = 'conformance.json';
const COLUMNS = ['GROUP', 'RIGHT', 'REFUSED', 'WRONG', 'SKIPPED'];
const PIPED_COLUMNS = 100;
const EXIT_WRONG = 1;
const EXIT_USAGE = 2;

interface SignerFile {
  readonly network: string;
  readonly keys: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly chain?: Chain;
  readonly bids?: boolean;
  readonly restart?: readonly [string, ...string[]];
}

try {
  const report = await runConformance(signerOf(process.argv.slice(2)), VECTORS);
  for (const { group, what, why } of report.skipped) console.log(`skipped: ${group}: ${what}: ${why}`);
  for (const { group, name, verdict, says } of report.findings) {
    if (verdict !== 'right') console.log(`${verdict}: ${group}: ${name}: ${says}`);
  }
  console.log(renderTable(COLUMNS, tableOf(report), process.stdout.columns ?? PIPED_COLUMNS));
  process.exitCode = report.findings.every(({ verdict }) => verdict === 'right') ? 0 : EXIT_WRONG;
} catch (error) {
  console.error(`conformance: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = EXIT_USAGE;
}

function signerOf(given: readonly string[]): SignerUnderTest {
  const { values } = readArguments({ url: { placeholder: 'URL' }, file: { placeholder: 'FILE' } }, given);
  const { url, file = DEFAULT_FILE } = values;
  if (typeof url !== 'string' || typeof file !== 'string') throw new ArgumentsError('give the signer: --url URL');
  const text = readFileSync(file, 'utf8');
  const written = JSON.parse(text) as SignerFile;
  const { network, keys, headers = {}, chain, bids = false, restart } = written;
  if (!Array.isArray(keys) || keys.length === 0) throw new Error(`${file}: keys: give public keys of test validators`);
  return {
    url: url.replace(/\/$/, ''),
    keys: keys.map((key) => (key.startsWith('0x') ? key : `0x${key}`)),
    headers,
    restart,
    chain: chain ?? chainOf(network),
    target: {
      network: chain === undefined ? network : 'custom',
      keyCount: keys.length,
      bids,
    },
  };
}

function chainOf(name: string): Chain {
  if (!Object.hasOwn(PUBLIC_NETWORKS, name) || name === 'ephemery') {
    throw new Error(`no built-in network ${name}: give its chain (docs/guides/conformance.md)`);
  }
  const { genesisValidatorsRoot, slotsPerEpoch, forks } = publicNetwork(name as Parameters<typeof publicNetwork>[0]);
  return {
    genesisValidatorsRoot: encodeHex(genesisValidatorsRoot),
    slotsPerEpoch,
    forks: forks.map((fork) => ({ name: fork.name, version: encodeHex(fork.version), epoch: fork.epoch })),
  };
}
