// `make test-clients`: real validator clients against this signer and a small chain, for three whole epochs: one asks
// a signer, one a combiner before four participants, which are disturbed meanwhile. What is judged is the chain's own
// word (votes, sync messages and an exit in its blocks) and the signers' (audit lines). Ends with `N passed, N failed,
// N skipped`; the exit code is 0 when nothing failed. Clients that no package registry has are named as skipped.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killChildren } from '../../rehearsal/signer.ts';
import { deployKeys, FULL_ACCESS } from '../support/deployment.ts';
import { startDistributed } from '../support/participants.ts';
import { JUDGED_EPOCHS, type Judgement, judge } from './checks.ts';
import {
  CAPELLA_EPOCH,
  type Devnet,
  interopKey,
  SECONDS_PER_SLOT,
  SLOTS_PER_EPOCH,
  startDevnet,
  VALIDATORS,
} from './devnet.ts';
import { auditOf, disturb } from './disturbed-participants.ts';
import { ClientUnavailable, installLodestar, type LodestarProgram } from './lodestar.ts';

const BUILD = join(import.meta.dirname, '../../build/clients');
/** Beside the last judged slot: its votes are in the blocks after it. */
const SLOTS_AFTER = 3;
/** The others have shares: 3 of 4. */
const WITH_WHOLE_KEYS = VALIDATORS / 2;
const THRESHOLD = 3;
const PARTICIPANTS = 4;
const EXITING = VALIDATORS - 1;
/** Characters of a problem; the logs have the rest. */
const MOST_SAID = 800;
const FEE_RECIPIENT = `0x${'5e'.repeat(20)}`;

/** Clients that cannot be run here, and why. What their sources say is in docs/guides/clients.md. */
const SKIPPED: readonly string[] = [
  'Gloas, Fulu, Electra and Deneb: no beacon node that is in a registry as a whole has them',
  'Prysm: the Go module proxy serves none of its versions',
  'Vero: no package; the one of this name on PyPI is something else',
  'Lighthouse, Teku, Nimbus, Grandine: no package in a registry',
];

// Leaving by way of 'exit' stops what was started.
for (const [signal, code] of [
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => process.exit(code));
}

let judgement: Judgement = { checks: [], counted: [] };
const skipped = [...SKIPPED];
try {
  const lodestar = installLodestar(join(BUILD, 'lodestar'));
  process.stdout.write(`Lodestar ${lodestar.version}: beacon node and validator client\n`);
  judgement = await run(lodestar);
} catch (error) {
  if (!(error instanceof ClientUnavailable)) throw error;
  skipped.unshift(`Lodestar: ${error.message}`);
} finally {
  await killChildren();
}
const { checks, counted } = judgement;
for (const { name, problem } of checks) {
  process.stdout.write(
    problem === undefined ? `  passed - ${name}\n` : `  FAILED - ${name}: ${problem.slice(0, MOST_SAID)}\n`,
  );
}
for (const what of counted) process.stdout.write(`  counted - ${what}\n`);
for (const what of skipped) process.stdout.write(`  skipped - ${what}\n`);
const failed = checks.filter(({ problem }) => problem !== undefined).length;
process.stdout.write(`${checks.length - failed} passed, ${failed} failed, ${skipped.length} skipped\n`);
process.exitCode = failed === 0 ? 0 : 1;

async function run(lodestar: LodestarProgram): Promise<Judgement> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-clients-'));
  process.stdout.write(`  logs are in ${folder}\n`);
  const devnet = await startDevnet(lodestar, folder);
  const keys = Array.from({ length: VALIDATORS }, (_, index) => interopKey(index));
  const network = {
    network: 'custom',
    custom_network: {
      config_file: devnet.configFile,
      genesis_validators_root: devnet.genesisValidatorsRoot,
      genesis_time: devnet.genesisTime,
    },
  };
  // Lodestar can send no credential (docs/guides/clients.md): loopback, and a rule for callers without one.
  const signer = await deployKeys(keys.slice(0, WITH_WHOLE_KEYS), {
    ...network,
    static_auth: { policies: [FULL_ACCESS], anonymous: { policies: [FULL_ACCESS.name] } },
  }).start();
  await using distributed = await startDistributed({
    keys: keys.slice(WITH_WHOLE_KEYS),
    threshold: THRESHOLD,
    config: network,
    stores: Array.from({ length: PARTICIPANTS }, () => ({})),
  });
  const startClient = (name: string, signerUrl: string) =>
    lodestar.start(name, folder, [
      ...['validator', '--network', 'dev', '--paramsFile', devnet.configFile, '--dataDir', join(folder, name)],
      ...['--beaconNodes', devnet.beaconUrl, '--externalSigner.url', signerUrl, '--externalSigner.fetch'],
      ...['--suggestedFeeRecipient', FEE_RECIPIENT, '--builder'],
    ]);
  const validator = startClient('validator client', signer.url);
  const distributedValidator = startClient('validator client of shares', distributed.combiner.url);
  const disturbed = disturb(distributed, devnet);
  disturbed.catch(() => undefined); // it is awaited below, perhaps later than it fails

  const reached = (slot: number) =>
    validator.until(`slot ${slot}`, async () => {
      if (Date.now() / 1000 > endOf(devnet, slot)) return true; // what the chain lacks then, the checks say
      return (await devnet.headSlot()) >= slot ? true : undefined;
    });
  await reached(CAPELLA_EPOCH * SLOTS_PER_EPOCH + 1);
  const exiting = keys[EXITING]?.publicKey ?? '';
  await lodestar.run('sign-exit.mjs', [
    devnet.beaconUrl,
    distributed.combiner.url,
    exiting,
    `${EXITING}`,
    `${CAPELLA_EPOCH}`,
  ]);
  const lastSlot = ((JUDGED_EPOCHS.at(-1) ?? 0) + 1) * SLOTS_PER_EPOCH + SLOTS_AFTER;
  await reached(lastSlot);
  const blocks = await Promise.all(Array.from({ length: lastSlot + 1 }, (_, slot) => devnet.block(slot)));
  await disturbed;
  return judge({
    blocks: blocks.filter((block) => block !== undefined),
    audit: [...signer.log.filter((line) => line['audit'] === true), ...auditOf(distributed, THRESHOLD)],
    registrations: devnet.registrations(),
    exiting: `${EXITING}`,
    logFiles: [validator.logFile, distributedValidator.logFile, devnet.logFile],
  });
}

/** With a slot to spare: a chain whose clock is past it has this block or never will. */
function endOf({ genesisTime }: Devnet, slot: number): number {
  return genesisTime + (slot + 2) * SECONDS_PER_SLOT;
}
