// `strongroom slashing status|jump|retire|reinstate|prune`: what is done with a store as a whole, or with keys in it.

import { ArgumentsError } from '../../common/command-line/arguments.ts';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { note } from '../../common/command-line/terminal.ts';
import { readIncarnations } from '../../signer/slashing/incarnation.ts';
import { floorAt, higherFloor, isClockBehind, jumpToPresent } from '../../signer/slashing/jump.ts';
import { PRUNE_STEP_ENTRIES } from '../../signer/slashing/operations/pruning.ts';
import type { HighWaterMarks, StoreFloor } from '../../signer/slashing/types.ts';
import { isEnded } from '../../signer/tenure.ts';
import { KEYS, type OpenStore, readPublicKeys, slashingCommand } from './slashing-command.ts';
import { noteRaisedByHand, noteWeb3Signer } from './slashing-notes.ts';
import { web3SignerNames } from './web3signer-name.ts';

export const status = slashingCommand(
  {
    summary: 'Show the store, its network, its floor, how many records it holds, and which keys are retired',
    flags: {},
    examples: ['strongroom slashing status -c strongroom.yaml', 'watch strongroom slashing status -c strongroom.yaml'],
  },

  () => showStatus,
);

async function showStatus({ backend, keeper, terminal }: OpenStore): Promise<ExitCode> {
  const { validators, blocks, attestations, genesisValidatorsRoot } = await backend.status();
  const { id, incarnation, floor } = await keeper.identity();
  const { held, web3signers } = readIncarnations(incarnation);
  const tenures = [...(await backend.tenures())].sort(([one], [other]) => (one < other ? -1 : 1));
  const retired = tenures.filter(([, tenure]) => isEnded(tenure));
  terminal.stdout.write(
    `backend: ${backend.name}\ngenesis validators root: ${genesisValidatorsRoot}\n` +
      `store: ${id}\nincarnation: ${held[0] ?? 'none'}\nfloor: ${floor === null ? 'none' : floorText(floor)}\n` +
      `keys: ${validators}\nblocks: ${blocks}\nattestations: ${attestations}\nretired keys: ${retired.length}\n`,
  );
  for (const database of web3signers) terminal.stdout.write(`settled database of Web3Signer: ${database}\n`);
  for (const [publicKey, tenure] of retired) terminal.stdout.write(`retired: ${publicKey} (tenure ${tenure})\n`);
  return EXIT.ok;
}

export const prune = slashingCommand(
  {
    summary: 'Delete entries that lie behind the low-water marks; the server does so by itself, in small steps',
    flags: {},
    examples: [
      'strongroom slashing prune -c strongroom.yaml',
      'strongroom slashing prune -c strongroom.yaml && strongroom slashing status -c strongroom.yaml',
    ],
  },

  () => pruneStore,
);

async function pruneStore({ backend, terminal }: OpenStore): Promise<ExitCode> {
  let total = 0;
  for (let deleted = -1; deleted !== 0; total += deleted) deleted = await backend.pruneStep(PRUNE_STEP_ENTRIES);
  terminal.stdout.write(`pruned entries: ${total}\n`);
  return EXIT.ok;
}

export const retire = slashingCommand(
  {
    summary: 'From now on every signer of this store refuses these keys; durable when the command ends',
    notes: ['What is exported afterwards is final: nothing can be signed that it does not list.'],
    argument: KEYS,
    flags: {},
    examples: [
      'strongroom slashing retire 0x8000… -c strongroom.yaml',
      'strongroom slashing export --pubkeys 0x8000… -c strongroom.yaml > moved.json',
    ],
  },

  ({ words }) => {
    const publicKeys = readPublicKeys(words);
    return (open) => retireKeys(open, publicKeys);
  },
);

/** Durable before it says so; what other signers of the store have under way ends in the store first. */
async function retireKeys({ backend, terminal }: OpenStore, publicKeys: readonly string[]): Promise<ExitCode> {
  const tenures = await backend.endTenures(publicKeys);
  for (const publicKey of publicKeys) {
    terminal.stdout.write(`retired: ${publicKey} (tenure ${tenures.get(publicKey) ?? 'unknown'})\n`);
  }
  return EXIT.ok;
}

export const reinstate = slashingCommand(
  {
    summary: 'Let keys sign again that were retired: by a DELETE, by being made inactive, or by `retire`',
    notes: ['Their old records stay. Importing a key does the same.'],
    argument: KEYS,
    flags: {},
    examples: ['strongroom slashing reinstate 0x8000… -c strongroom.yaml'],
  },

  ({ words }) => {
    const publicKeys = readPublicKeys(words);
    return (open) => reinstateKeys(open, publicKeys);
  },
  { needsBound: true },
);

async function reinstateKeys({ backend, terminal }: OpenStore, publicKeys: readonly string[]): Promise<ExitCode> {
  const before = await backend.tenures(publicKeys);
  const changed = await backend.beginTenures(before);
  for (const publicKey of publicKeys) {
    const tenure = changed.get(publicKey);
    terminal.stdout.write(
      tenure === undefined ? `was not retired: ${publicKey}\n` : `reinstated: ${publicKey} (tenure ${tenure})\n`,
    );
  }
  if (changed.size > 0) note(terminal, 'Signers that run sign with them after a reload (SIGHUP or POST /reload).');
  return EXIT.ok;
}

export const jump = slashingCommand(
  {
    summary: 'Raise the store to the present, after any doubt whether records were lost',
    notes: [
      'For every key and every signer of the store: a restored backup, a failover that lost commits. Everything up to ' +
        'now is refused from then on, which costs a validator at most one vote.',
      'With dynamodb it also moves a table to the configured region, and makes a record that was lost anew: stop all ' +
        'signers of the other region for good before.',
    ],
    flags: {
      'dry-run': { meaning: 'Say what it would refuse and cost, and change nothing' },
      slot: { placeholder: 'SLOT', meaning: 'The present, where the clock cannot say it; with --epoch' },
      epoch: { placeholder: 'EPOCH', meaning: 'The same; with --slot' },
      'waive-web3signer': {
        placeholder: 'HOST:PORT/DATABASE',
        meaning:
          'The database of a Web3Signer that is stopped for good and whose record does not come: `web3signer eth2 ' +
          '--slashing-protection-db-url=…` starts without it from then on',
      },
    },
    examples: ['strongroom slashing jump --dry-run -c strongroom.yaml', 'strongroom slashing jump -c strongroom.yaml'],
  },

  ({ values }) => {
    const waived = values['waive-web3signer'];
    const asked = { present: readPresent(values), dryRun: values['dry-run'], waived: waived && readDatabase(waived) };
    return (open) => jumpStore(open, asked);
  },
  { isForJump: true },
);

interface Jump {
  /** What is taken for the present; undefined: the clock decides. */
  readonly present: Present | undefined;
  readonly dryRun: boolean;
  /** The name of a database of Web3Signer whose record does not come (web3signer-name.ts). */
  readonly waived: string | undefined;
}

interface Present {
  readonly slot: number;
  readonly epoch: number;
}

/** @throws ArgumentsError */
function readPresent(values: { readonly slot: string | undefined; readonly epoch: string | undefined }) {
  const [slot, epoch] = [wholeNumber(values.slot), wholeNumber(values.epoch)];
  if (Number.isNaN(slot) || Number.isNaN(epoch)) throw new ArgumentsError('--slot and --epoch are whole numbers');
  if (slot !== undefined && epoch !== undefined) return { slot, epoch };
  if (slot === epoch) return undefined;
  throw new ArgumentsError('--slot and --epoch are given together');
}

function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

/** @throws ArgumentsError */
function readDatabase(written: string): string {
  const [name, ...others] = web3SignerNames(written);
  if (name !== undefined && others.length === 0) return name;
  throw new ArgumentsError('--waive-web3signer names one database: HOST[:PORT]/DATABASE');
}

async function jumpStore(open: OpenStore, { present, dryRun, waived }: Jump): Promise<ExitCode> {
  const { backend, keeper, terminal } = open;
  const highest = await keeper.highestMarks();
  const target = floorByHand(open, present, highest) ?? floorByClock(open, highest);
  if (typeof target === 'string') {
    sayFailure(terminal, 'strongroom', target);
    return EXIT.failed;
  }
  let inForce = higherFloor((await keeper.identity()).floor, target);
  if (!dryRun) {
    inForce = (await jumpToPresent(keeper, () => target)).floor ?? target;
    await noteRaisedByHand(keeper);
    if (waived !== undefined) await noteWeb3Signer(keeper, waived);
  }
  const { validators } = await backend.status();
  terminal.stdout.write(
    `${dryRun ? 'would refuse' : 'refused from now on'}: ${floorText(inForce)}\n` +
      `keys with records: ${validators}; keys without records are covered too\n` +
      `highest signed: block slot ${highest.blockSlot ?? 'none'}, target epoch ${highest.targetEpoch ?? 'none'}\n` +
      `cost: a validator that has not voted for epoch ${inForce.targetEpoch} yet misses that vote, and a block at slot ` +
      `${inForce.slot} or before is not signed\n`,
  );
  if (dryRun) note(terminal, 'Nothing was changed. Without --dry-run the store is raised, for good.');
  return EXIT.ok;
}

/** Or why it may not be raised so far: a jump is for good, and beyond the present nothing was signed that is lost. */
function floorByHand(
  open: OpenStore,
  asked: Present | undefined,
  highest: HighWaterMarks,
): StoreFloor | string | undefined {
  if (asked === undefined) return undefined;
  const { slot, epoch } = asked;
  const present = open.network.time === undefined ? undefined : floorAt(open.clock.now(), open.network.time);
  if (present !== undefined) {
    const lastSlot = Math.max(present.slot, highest.blockSlot ?? 0);
    const lastEpoch = Math.max(present.targetEpoch, highest.targetEpoch ?? 0);
    if (slot > lastSlot || epoch > lastEpoch) {
      return (
        `--slot ${slot} --epoch ${epoch} is still to come: by the clock of this machine the present is slot ` +
        `${present.slot}, epoch ${present.targetEpoch}. A jump is for good, and until then no key would sign: give the ` +
        'present, or leave both out'
      );
    }
  }
  return { slot, targetEpoch: epoch, sourceEpoch: Math.max(0, epoch - 1) };
}

/** Or why the clock does not say. */
function floorByClock({ network, clock }: OpenStore, highest: HighWaterMarks): StoreFloor | string {
  if (network.time === undefined) {
    return 'the genesis time of this network is not known: set custom_network.genesis_time, or give --slot and --epoch';
  }
  const now = clock.now();
  if (isClockBehind(now, network.time, highest)) {
    return (
      `a key has signed slot ${highest.blockSlot ?? 'none'} or target epoch ${highest.targetEpoch ?? 'none'}, which by the ` +
      'clock of this machine is still to come: set the clock, or give --slot and --epoch'
    );
  }
  return floorAt(now, network.time);
}

function floorText({ slot, sourceEpoch, targetEpoch }: StoreFloor): string {
  return `blocks up to slot ${slot}, votes with a target up to epoch ${targetEpoch} or a source before epoch ${sourceEpoch}`;
}
