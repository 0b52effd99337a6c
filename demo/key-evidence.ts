// Where an enclave's master key comes from, in one line: the custody step of three starts (a first boot, an upgraded
// image, the next ceremony) on the stand-ins of the demonstration, each with a security module of its own under one
// TEST authority. verify_key.py alone judges what the last start shows. It is alone because the demonstration is one
// story.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type CeremonyBlock,
  ceremonyArns,
  ceremonyDigest,
  deploymentOf,
  parseCeremony,
} from '../ceremony/definition.ts';
import { encodeHex } from '../common/formats/hex.ts';
import { systemClock } from '../common/observe/clock.ts';
import type { Log } from '../common/observe/log.ts';
import { measureOnce, readMeasurements } from '../enclave/measure.ts';
import { createNsm } from '../enclave/nsm/client.ts';
import type { CustodyWorld } from '../rehearsal/custody.ts';
import { dynamoDBClientOptions, WAITS_FOR_ANSWERS } from '../rehearsal/dynamodb.ts';
import { kmsClientOptions } from '../rehearsal/kms/server.ts';
import { createNsmEmulator, testPcr } from '../rehearsal/nsm/emulator.ts';
import { createNsmPki, type NsmPki } from '../rehearsal/nsm/pki.ts';
import { createDynamoDBClient } from '../signer/aws/dynamodb.ts';
import { createKms, custodyKeysOf } from '../signer/aws/kms.ts';
import { rootTokenMaker } from '../signer/boot/custody.ts';
import { originStatus } from '../signer/boot/http-application/chamber-status.ts';
import { bootChamber } from '../signer/chamber/boot-chamber.ts';
import { keyProvenance } from '../signer/chamber/key-provenance.ts';
import { stateTable } from '../signer/chamber/state-table.ts';
import { publicNetwork } from '../signer/sign/networks.ts';

const CEREMONY_PCR = 17;
const NETWORK = encodeHex(publicNetwork('mainnet').genesisValidatorsRoot);
const PROGRAM = fileURLToPath(new URL('../docs/examples/verify_key.py', import.meta.url));
const SILENT: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
/** Registers of two images, as their pcrs.json say. */
const IMAGES = [0, 30].map((first) => ({ 0: testPcr(first), 1: testPcr(first + 1), 2: testPcr(first + 2) }));

type Image = (typeof IMAGES)[number];

/** @throws Error when the evidence does not hold */
export async function tellKeyEvidence(custody: CustodyWorld): Promise<string> {
  const [first, upgraded] = IMAGES;
  if (first === undefined || upgraded === undefined) throw new Error('there are two images');
  const world = { custody, pki: await createNsmPki(), table: await custody.createTable() };
  const ceremony = custody.createCeremony();
  const next: CeremonyBlock = {
    ...custody.createCeremony(),
    generation: 2,
    retired_kms_keys: ceremony.kms_keys,
    previous_ceremony: digestOf(ceremony),
  };
  await start(world, first, ceremony);
  await start(world, upgraded, ceremony);
  return judge(world, await start(world, upgraded, next), next);
}

interface World {
  readonly custody: CustodyWorld;
  readonly pki: NsmPki;
  readonly table: string;
}

/** @returns what its status shows of the key */
async function start({ custody, pki, table }: World, image: Image, block: CeremonyBlock) {
  const ceremony = parseCeremony(block);
  const nsm = createNsm((await createNsmEmulator({ pki, pcrs: { ...image, 8: Buffer.alloc(48) } })).exchange);
  await measureOnce(nsm, CEREMONY_PCR, ceremonyDigest(ceremony));
  const deployment = deploymentOf(NETWORK, table);
  const provenance = keyProvenance({
    nsm,
    documents: { name: 'the TEST security module', rootSha256: pki.rootFingerprint },
    measurements: await readMeasurements(nsm),
    acceptedImages: IMAGES.map(measurementsOf),
    ceremony,
    deployment,
  });
  const client = createDynamoDBClient(dynamoDBClientOptions(custody.dynamodb.endpoint, WAITS_FOR_ANSWERS));
  const kms = createKms(kmsClientOptions(custody.kms, ceremonyArns(ceremony)), { log: SILENT });
  try {
    const booted = await bootChamber({
      table: stateTable(client, table),
      terms: { ceremony, deployment },
      custodyKeys: custodyKeysOf(kms),
      makeRootToken: rootTokenMaker(systemClock),
      memory: 'off',
      provenance,
      clock: systemClock,
      log: SILENT,
    });
    if (booted.kind === 'sealed') throw new Error('the table is sealed');
    booted.masterKey.wipe();
    return originStatus(booted);
  } finally {
    kms.close();
    client.destroy();
  }
}

function judge({ pki, table }: World, origin: Awaited<ReturnType<typeof start>>, ceremony: CeremonyBlock): string {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-key-evidence-'));
  try {
    const written = (name: string, value: unknown): string => {
      writeFileSync(join(folder, name), JSON.stringify(value));
      return join(folder, name);
    };
    const pcrs = IMAGES.flatMap((image, at) => [
      '--pcrs',
      written(`pcrs-${at}.json`, { measurements: measurementsOf(image) }),
    ]);
    const status = written('status.json', { custody: origin });
    const terms = ['--ceremony', digestOf(ceremony), '--deployment', table, '--network', NETWORK];
    const args = [PROGRAM, status, '--test-root', pki.rootFingerprint, ...pcrs, ...terms];
    const env = { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' };
    const python = PYTHONS.find((one) => spawnSync(one, ['-c', 'import cryptography']).status === 0);
    if (python === undefined) return NOT_JUDGED;
    const { status: code, stdout, stderr } = spawnSync(python, args, { encoding: 'utf8', env });
    if (code !== 0) throw new Error(`the evidence of the master key is refused: ${stdout}${stderr}`);
    return `${relative('', PROGRAM)}: ${linesOf(stdout)}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** That of the PATH, then the system's, which has Debian's packages. */
const PYTHONS = ['python3', '/usr/bin/python3'];
const NOT_JUDGED = 'NOT judged here: it takes python3 with the package cryptography (Debian: python3-cryptography)';

/** Each link and the root token, and the verdict, without the registers. */
function linesOf(stdout: string): string {
  return stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(' '))
    .map((line) => line.replace(/, SHA-384 [0-9a-f]+,/, ''))
    .join('; ');
}

function measurementsOf(image: Image) {
  const hex = (index: 0 | 1 | 2): string => image[index].toString('hex');
  return { PCR0: hex(0), PCR1: hex(1), PCR2: hex(2) };
}

function digestOf(ceremony: CeremonyBlock): string {
  return ceremonyDigest(parseCeremony(ceremony)).toString('hex');
}
