// `strongroom slashing status|jump|retire|reinstate|prune`: what is done with a store as a whole, or with keys in it.

import { ArgumentsError } from '../../common/command-line/arguments.ts';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { note } from '../../common/command-line/terminal.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { confirmedPresent } from '../../signer/slashing/doubt/clock.ts';
import { openDoubts } from '../../signer/slashing/doubt/doubts.ts';
import { latestBy, leadOf } from '../../signer/slashing/future.ts';
import { higherMarks } from '../../signer/slashing/history/head.ts';
import { readIncarnations } from '../../signer/slashing/incarnation.ts';
import { floorAt, futureFloor, futureText } from '../../signer/slashing/jump.ts';
import { PRUNE_STEP_ENTRIES } from '../../signer/slashing/operations/prune-loop.ts';
import type { StoreFloor } from '../../signer/slashing/types.ts';
import { isEndedTenure } from '../../signer/tenure.ts';
import { type CommandStore, canonicalKeys, KEYS, slashingCommand } from './slashing-command.ts';
import { noteRaisedByHand, noteWeb3Signer } from './slashing-notes.ts';
import { web3SignerNames } from './web3signer-name.ts';

export const storeStatus = slashingCommand(
  {
    summary: 'Show the store, its network, its floor, how many records it holds, and which keys are retired',
    flags: {},
    examples: ['strongroom slashing status -c strongroom.yaml', 'watch strongroom slashing status -c strongroom.yaml'],
  },

  () => showStatus,
);

async function showStatus({ backend, bareStore, network, clock, terminal }: CommandStore): Promise<ExitCode> {
  const { validators, blocks, attestations, genesisValidatorsRoot } = await backend.status();
  const { id, incarnation, floor } = await bareStore.identity();
  const { held, web3signers } = readIncarnations(incarnation);
  const tenures = [...(await backend.tenures())].sort(([one], [other]) => (one < other ? -1 : 1));
  const retired = tenures.filter(([, tenure]) => isEndedTenure(tenure));
  terminal.stdout.write(
    `backend: ${backend.name}\ngenesis validators root: ${genesisValidatorsRoot}\n` +
      `store: ${id}\nincarnation: ${held[0] ?? 'none'}\nfloor: ${floor === null ? 'none' : floorText(floor)}\n` +
      `keys: ${validators}\nblocks: ${blocks}\nattestations: ${attestations}\nretired keys: ${retired.length}\n`,
  );
  const future = network.time && futureFloor(floor, clock.now(), network.time);
  if (future !== undefined) note(terminal, `warning: ${futureText(future)}`);
  for (const database of web3signers) terminal.stdout.write(`settled database of Web3Signer: ${database}\n`);
  if (network.time !== undefined) {
    const latest = latestBy(clock.now, network.time)();
    const ahead = await backend.marksBeyond(latest);
    terminal.stdout.write(`keys ahead of the clock: ${ahead.size}\n`);
    for (const [key, marks] of ahead) terminal.stdout.write(`ahead of the clock: ${key}: ${leadOf(marks, latest)}\n`);
  }
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

async function pruneStore({ backend, terminal }: CommandStore): Promise<ExitCode> {
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
    const publicKeys = canonicalKeys(words);
    return (open) => retireKeys(open, publicKeys);
  },
);

/** Durable before it says so; what other signers of the store have under way ends in the store first. */
async function retireKeys({ backend, terminal }: CommandStore, publicKeys: readonly string[]): Promise<ExitCode> {
  const tenures = await backend.endTenures(publicKeys);
  for (const publicKey of publicKeys) {
    terminal.stdout.write(`retired: ${publicKey} (tenure ${tenures.get(publicKey) ?? 'unknown'})\n`);
  }
  return EXIT.ok;
}

export const reinstate = slashingCommand(
  {
    summary: 'Let keys sign again that were retired: by a DELETE, by being made inactive, or by `retire`',
    notes: [
      'Their old records stay. Importing a key does the same.',
      'A key whose records lie ahead of the clock signs nothing until then. When they are of messages that it never ' +
        'signed, --unsafe-forget-records brings it back: what this store knows of the key is replaced by the present, so ' +
        'nothing up to now is signed again. What it did sign for the future is forgotten with the rest: when the chain ' +
        'comes there, another message can be signed in its place, and the validator is slashed.',
    ],
    argument: KEYS,
    flags: {
      'unsafe-forget-records': {
        placeholder: 'KEY',
        meaning:
          'The same key again, as your word that it signed nothing later than now, here or anywhere. One key, retired ' +
          'before, with records ahead of the clock',
      },
    },
    examples: [
      'strongroom slashing reinstate 0x8000… -c strongroom.yaml',
      'strongroom slashing reinstate 0x8000… --unsafe-forget-records 0x8000… -c strongroom.yaml',
    ],
  },

  ({ words, values: { 'unsafe-forget-records': confirmed } }) => {
    const publicKeys = canonicalKeys(words);
    if (confirmed === undefined) return (open) => reinstateKeys(open, publicKeys);
    const [publicKey, ...others] = publicKeys;
    if (publicKey === undefined || others.length > 0 || canonicalKeys([confirmed])[0] !== publicKey)
      throw new ArgumentsError('--unsafe-forget-records repeats the one key that is reinstated');
    return (open) => startAfresh(open, publicKey);
  },
  { needsBound: true },
);

async function reinstateKeys({ backend, terminal }: CommandStore, publicKeys: readonly string[]): Promise<ExitCode> {
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

/** Of a key that is retired, so that no signer signs with it meanwhile, and that its own records shut out. */
async function startAfresh(open: CommandStore, publicKey: string): Promise<ExitCode> {
  const { bareStore, backend, network, confirmedClock, terminal } = open;
  const refuse = (why: string): ExitCode => {
    sayFailure(terminal, 'strongroom', `nothing was forgotten: ${why}`);
    return EXIT.failed;
  };
  const floor = await confirmedPresent(network.time, confirmedClock)().catch(problemOf);
  if (typeof floor === 'string' || network.time === undefined) return refuse(String(floor));
  const latest = latestBy(confirmedClock.now, network.time)();
  const marks = (await backend.marksBeyond(latest, [publicKey])).get(publicKey);
  if (marks === undefined) return refuse(`${publicKey} has no records ahead of the clock`);
  if (!(await bareStore.startAfresh(publicKey, floor)))
    return refuse(
      `${publicKey} is not retired, and a signer may sign with it: strongroom slashing retire ${publicKey}`,
    );
  terminal.stdout.write(
    `forgotten: ${publicKey}: ${leadOf(marks, latest)}\nrefused from now on: ${floorText(floor)}\n`,
  );
  return reinstateKeys(open, [publicKey]);
}

export const jump = slashingCommand(
  {
    summary: 'Raise the store to the present, after any doubt whether records were lost',
    notes: [
      'For every key and every signer of the store: a restored backup, a failover that lost commits. Everything up to ' +
        'now is refused from then on, which costs a validator one vote, two at most.',
      'With dynamodb it also moves a table to the configured region, and makes a record that was lost anew: stop all ' +
        'signers of the other region for good before.',
    ],
    flags: {
      'dry-run': { meaning: 'Say what it would refuse and cost, and change nothing' },
      slot: { placeholder: 'SLOT', meaning: 'The present, where nothing confirms the clock; with --epoch' },
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

async function jumpStore(open: CommandStore, { present, dryRun, waived }: Jump): Promise<ExitCode> {
  const { backend, bareStore, terminal, logger } = open;
  const target = await presentByHand(open, present).catch(problemOf);
  if (typeof target === 'string') {
    sayFailure(terminal, 'strongroom', target);
    return EXIT.failed;
  }
  let inForce = higherMarks((await bareStore.identity()).floor, target);
  if (!dryRun) {
    const log = logger.module('slashing');
    const doubts = openDoubts({ store: bareStore, present: async () => target, onJump: () => undefined, log });
    inForce = (await doubts.settleNow({ cause: 'by_hand' })).floor ?? target;
    await noteRaisedByHand(bareStore);
    if (waived !== undefined) await noteWeb3Signer(bareStore, waived);
  }
  const { validators } = await backend.status();
  terminal.stdout.write(
    `${dryRun ? 'would refuse' : 'refused from now on'}: ${floorText(inForce)}\n` +
      `keys with records: ${validators}; keys without records are covered too\n` +
      `cost: a validator that has not voted for epoch ${inForce.targetEpoch} yet misses that vote, and a block at slot ` +
      `${inForce.slot} or before is not signed\n`,
  );
  if (dryRun) note(terminal, 'Nothing was changed. Without --dry-run the store is raised, for good.');
  return EXIT.ok;
}

export const lowerFloor = slashingCommand(
  {
    summary: 'Lower a floor of the future to the present, after a jump by a clock that was ahead',
    notes: [
      'Stop all signers of the store before. What keys have signed or imported stays refused, and nothing that was lost ' +
        'before that jump is later than the present. A clock that nothing confirms is not believed. Records that were ' +
        'lost again, of a signer that went on by the clock that was ahead, are the exception: then wait instead.',
    ],
    flags: { 'dry-run': { meaning: 'Say what it would do, and change nothing' } },
    examples: [
      'strongroom slashing lower-floor --dry-run -c strongroom.yaml',
      'strongroom slashing lower-floor -c strongroom.yaml',
    ],
  },

  ({ values }) =>
    (open) =>
      lowerStore(open, values['dry-run']),
);

async function lowerStore(
  { bareStore, network: { time }, confirmedClock, terminal }: CommandStore,
  dryRun: boolean,
): Promise<ExitCode> {
  const present = await confirmedPresent(time, confirmedClock)().catch(problemOf);
  if (typeof present === 'string' || time === undefined) {
    sayFailure(terminal, 'strongroom', String(present));
    return EXIT.failed;
  }
  const { floor } = await bareStore.identity();
  const future = futureFloor(floor, confirmedClock.now(), time);
  if (future === undefined) {
    note(terminal, 'The floor does not lie in the future: nothing was changed.');
    return EXIT.ok;
  }
  const lowered = dryRun ? present : ((await bareStore.jump(present, true)).floor ?? present);
  terminal.stdout.write(
    `was refused: ${floorText(future.floor)}\n${dryRun ? 'would refuse' : 'refused from now on'}: ${floorText(lowered)}\n`,
  );
  return EXIT.ok;
}

/** @throws SignerError why the clock does not say it; Error why the store may not be raised so far */
async function presentByHand(
  { network: { time }, confirmedClock }: CommandStore,
  asked: Present | undefined,
): Promise<StoreFloor> {
  const byClock = confirmedPresent(time, confirmedClock);
  if (asked === undefined) return byClock();
  const { slot, epoch } = asked;
  // Where nothing confirms the clock it still keeps a slip of the finger from shutting every key out.
  const present = await byClock().catch(() => time && floorAt(confirmedClock.now(), time));
  if (present !== undefined && (slot > present.slot || epoch > present.targetEpoch)) {
    throw new Error(
      `--slot ${slot} --epoch ${epoch} is still to come: the present is slot ${present.slot}, epoch ` +
        `${present.targetEpoch}. Until then no key would sign: give the present, or leave both out`,
    );
  }
  return { slot, targetEpoch: epoch, sourceEpoch: Math.max(0, epoch - 1) };
}

function problemOf(error: unknown): string {
  const isUnconfirmed = error instanceof SignerError && error.reason === 'clock_unconfirmed';
  if (isUnconfirmed) return `${error.hint}. Let a time service set it (a jump also takes --slot and --epoch)`;
  return error instanceof Error ? error.message : String(error);
}

function floorText({ slot, sourceEpoch, targetEpoch }: StoreFloor): string {
  return `blocks up to slot ${slot}, votes with a target up to epoch ${targetEpoch} or a source before epoch ${sourceEpoch}`;
}
