// `strongroom migrate`: the keys of a validator client, or of a Web3Signer, that is stopped for good, with the record
// of what they have signed. The record comes first. Keys are copied, so that the client's own can be taken away from
// it, which this command says and, when it is run again, looks at; it changes nothing in the client's folder and starts
// nothing. The configuration is written last: a migration that was cut is repeated, and until it is whole there is
// nothing to start a signer with. What it sees of the client (processes, times) finds a mistake and proves nothing: its
// operator's word, which it asks for, is what counts.

import { existsSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { plural, shellWord } from '../../common/command-line/printable.ts';
import { command, type WordsOf } from '../../common/command-line/program.ts';
import { canAsk, readLine } from '../../common/command-line/question.ts';
import { note, type Terminal } from '../../common/command-line/terminal.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { systemClock } from '../../common/observe/clock.ts';
import { networkOf } from '../../signer/config/network.ts';
import type { Config } from '../../signer/config/options.ts';
import { hasForeignName } from '../../signer/keys/files/foreign-file.ts';
import type { ChainTime } from '../../signer/slashing/future.ts';
import { isoTime } from '../../signer/slashing/jump.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { importFailure } from '../commands/slashing.ts';
import type { CommandStore } from '../commands/slashing-command.ts';
import { fileBytes, importFile } from '../commands/slashing-files.ts';
import { withStore } from '../commands/slashing-open.ts';
import { importWeb3Signer } from '../commands/slashing-web3signer.ts';
import { readConfigFile } from '../config/consensus-config.ts';
import { loadConfig } from '../config/load.ts';
import {
  CLIENT_FOLDERS,
  type FoundKeys,
  keystoresIn,
  lastWriteOf,
  MIGRATED,
  type MigratedClient,
  RECORD_FILE,
  recordAdvice,
  recordsOf,
  remoteDefinitions,
} from './client-folders.ts';
import { type OpenedKey, openKeys } from './client-keys.ts';
import { processesOf } from './client-processes.ts';
import { configurationText } from './configuration-text.ts';
import { FirstStepFailure, unusablePath } from './failure.ts';
import {
  DEFAULT_FOLDER,
  filesOf,
  SIGNER_FLAGS,
  SIGNER_URL,
  type SignerFolder,
  showNextSteps,
  shown,
  signerFolder,
  writeAll,
} from './signer-folder.ts';
import { tekuRecord } from './teku-record.ts';

const DESCRIPTION = {
  summary: 'Bring the keys of a validator client or of Web3Signer, which is stopped, with their record',
  usage: ['--from CLIENT DIR [--record FILE] [--to FOLDER] [OPTIONS]'],
  argument: {
    name: 'DIR',
    meaning:
      "The client's folder: --datadir of Lighthouse or Prysm, --data-path of Teku, --data-dir of Nimbus, --dataDir of " +
      'Lodestar, --key-store-path of Web3Signer',
  },
  flags: {
    from: { placeholder: 'CLIENT', choices: MIGRATED, required: true, meaning: 'Whose folder it is' },
    record: {
      placeholder: 'FILE',
      meaning:
        'What its keys have signed, as it exports it (EIP-3076). Of Web3Signer also the database, as in slashing import ' +
        "--from-web3signer. Teku's is read where it is",
    },
    to: {
      placeholder: 'FOLDER',
      meaning: `Where it is written; ${DEFAULT_FOLDER} in the present folder when not given`,
    },
    keys: {
      placeholder: 'DIR',
      meaning: "More keystores, NAME.json each: Teku's --validator-keys, Prysm's backup after unzip",
    },
    passwords: {
      placeholder: 'PATH',
      meaning: 'The one password of keystores that have none beside them: a file. Or a folder of NAME.txt for --keys',
    },
    stopped: { meaning: 'Your word that the client is stopped for good; needed where there is no terminal' },
    'unsafe-ignore-processes': {
      meaning: 'Your word that processes of the client that run here have other keys',
    },
    ...SIGNER_FLAGS,
  },
  notes: [
    'It imports the record, copies keystores and passwords, and writes strongroom.yaml, tokens and what the client needs ' +
      "below FOLDER. It changes nothing in the client's folder, and starts nothing. Run again, it finishes what was cut, " +
      'or says whether the client still has keys.',
    'Refused: a client that runs here, or signed within the last two epochs, and a record that is older than what the ' +
      'client wrote last. Keys of which the record says nothing are put aside.',
  ],
  examples: [
    `strongroom migrate --from lighthouse ~/.lighthouse/mainnet --record ${RECORD_FILE}`,
    'strongroom migrate --from teku /var/lib/teku --keys /var/lib/teku/keys --to /etc/strongroom',
    'strongroom migrate --from web3signer /etc/web3signer/keys --record env:WEB3SIGNER_DB --stopped --client lodestar',
  ],
} as const;

type MigrateFlags = WordsOf<typeof DESCRIPTION>['values'];

interface Source {
  readonly client: MigratedClient;
  readonly name: string;
  readonly folder: string;
  readonly network: string;
}

export const migrate = command(
  DESCRIPTION,
  async ({ values, argument }: WordsOf<typeof DESCRIPTION>, terminal: Terminal) => {
    const client = values.from as MigratedClient;
    const to = signerFolder(values.to ?? DEFAULT_FOLDER, values, terminal.env);
    const { name } = CLIENT_FOLDERS[client];
    const source: Source = { client, name, folder: realFolder(argument), network: to.network };
    const found = findKeys(source, values);
    if (existsSync(to.configuration)) return sayWhetherItCanSign(source, to, found, values, terminal);
    if (found.keys.length === 0) throw noKeys(source);
    if (values.keys !== undefined && !existsSync(values.keys))
      throw new FirstStepFailure(`--keys: there is no folder ${values.keys}`);
    const hasDescriptors = found.keys.some(({ secretKey }) => secretKey !== undefined);
    const text = configurationText({ ...to, ...saidFirst(source), hasDescriptors });
    const config = configOf(text);
    const time = networkOf(config, readConfigFile).time;
    const record = recordOf(source, values, config);
    const refuseIfItSigns = (): void => {
      refuseProcesses(source, values, terminal);
      refuseLateWrites(source, record, time);
    };
    refuseIfItSigns();
    await askWhetherStopped(source, values, terminal);
    const { keys, left } = await openKeys(found, values.passwords, terminal);
    terminal.stdout.write(`${source.name}\n  ${plural(keys.length, 'key')} in ${shown(source.folder)}\n`);
    for (const one of left) note(terminal, `  left: ${one}`);

    terminal.stdout.write('\nRecord\n');
    const named = new Set<string>();
    const code = await inNewStore(to, async () => {
      const imported = await importRecord(source, { config, record, named, keys }, terminal);
      refuseIfItSigns(); // again: opening a thousand keystores takes long, and a supervisor may have started it
      return imported;
    });
    if (code !== EXIT.ok) {
      note(terminal, 'No key and no configuration was written.');
      return code;
    }
    const known = keys.filter(({ publicKey }) => named.has(publicKey));
    const unknown = keys.filter(({ publicKey }) => !named.has(publicKey));
    writeFolder(source, to, { known, unknown }, text);
    await showNextSteps(to, toldOf(source, to, { known, unknown }, values), terminal);
    return EXIT.ok;
  },
);

/** A new store is removed when the record is refused: it may be of the wrong network. */
async function inNewStore(to: SignerFolder, work: () => Promise<ExitCode>): Promise<ExitCode> {
  const made = existsSync(to.path) ? dirname(to.records) : to.path;
  const isNew = !existsSync(made);
  writeAll([dirname(to.records)], []);
  try {
    return await work();
  } catch (error) {
    if (isNew) rmSync(made, { recursive: true, force: true });
    throw error;
  }
}

/** One that is gone is told by what was in it. */
function realFolder(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

function findKeys({ client, folder }: Source, { keys, passwords }: MigrateFlags): FoundKeys {
  const own = CLIENT_FOLDERS[client].find(folder);
  if (keys === undefined) return own;
  const more = keystoresIn(realFolder(keys), resolve(passwords ?? keys));
  return { keys: [...own.keys, ...more.keys], left: own.left };
}

function noKeys({ client, name, folder }: Source): FirstStepFailure {
  const advice =
    client === 'prysm'
      ? [
          'Prysm keeps all keys in one encrypted wallet. Have Prysm back them up (its --help has the last word), unzip it:',
          '  validator accounts backup --wallet-dir=WALLET --backup-dir=.',
          'and add --keys DIR, the folder of its keystores, to this command',
        ]
      : [`${name} keeps them in ${join(folder, CLIENT_FOLDERS[client].keys)}: name the folder above`];
  return new FirstStepFailure(`there is no key of ${name} in ${folder}`, advice);
}

function saidFirst({ client, name, folder }: Source) {
  const first = [
    `The keys are ${name}'s, from ${folder}, and their record was imported before this file was written.`,
    `${name} must never sign with them again: never start it with its old keys.`,
  ];
  return { writtenBy: `strongroom migrate --from ${client}`, first };
}

function configOf(text: string): Config {
  const input = { argv: ['-c', 'strongroom.yaml'], env: {}, readFile: () => Buffer.from(text) };
  const loaded = loadConfig(input, { compiledCeremony: false, withoutTokens: true });
  if (loaded.ok) return loaded.config;
  throw new Error(`the configuration of a migration has ${loaded.violations.length} violations`);
}

type ClientRecord =
  | { readonly database: string }
  | { readonly bytes: () => AsyncIterable<Uint8Array>; readonly writtenMs: number | undefined };

/** @throws FirstStepFailure */
function recordOf({ client, name, folder, network }: Source, { record }: MigrateFlags, config: Config): ClientRecord {
  if (record !== undefined && client === 'web3signer' && /^(?:env:|file:|postgres(?:ql)?:\/\/)/i.test(record))
    return { database: record };
  if (record !== undefined) {
    try {
      return { bytes: () => fileBytes(record), writtenMs: statSync(record).mtimeMs };
    } catch (error) {
      throw unusablePath(record, 'be read', error);
    }
  }
  const { genesisValidatorsRoot } = networkOf(config, readConfigFile);
  if (client === 'teku' && lastWriteOf(client, folder) !== undefined)
    return { bytes: () => tekuRecord(folder, encodeHex(genesisValidatorsRoot)), writtenMs: undefined };
  throw new FirstStepFailure(
    `the record of what ${name} has signed is needed: without it, this signer may sign what gets its keys slashed`,
    recordAdvice(client, folder, network),
  );
}

function refuseProcesses({ client, name, folder }: Source, values: MigrateFlags, terminal: Terminal): void {
  if (values['unsafe-ignore-processes']) return;
  const running = processesOf(CLIENT_FOLDERS[client].process, recordsOf(client, folder));
  if (running === undefined) note(terminal, `note: whether ${name} runs cannot be seen on this system`);
  else if (running.length > 0) {
    const named = running.map(({ pid, program }) => `${pid} (${program})`).join(', ');
    throw new FirstStepFailure(`${name} runs here: process ${named}`, [
      'stop it, and what starts it again (systemd, Docker): two signers with one key get its validator slashed',
      'for a process that has other keys: --unsafe-ignore-processes',
    ]);
  }
}

const QUIET_EPOCHS = 2;
/** What an export itself may write after it, when it closes the database. */
const EXPORT_MS = 10_000;

/** By the times of its files. */
function refuseLateWrites(source: Source, record: ClientRecord, time: ChainTime | undefined): void {
  const { client, name, folder, network } = source;
  const written = lastWriteOf(client, folder);
  if (written === undefined || time === undefined) return;
  refuseUntil(written + QUIET_EPOCHS * epochMs(time), `${name} wrote its record at ${isoTime(written)}`);
  if ('database' in record || record.writtenMs === undefined || record.writtenMs + EXPORT_MS >= written) return;
  throw new FirstStepFailure(
    `the record is of ${isoTime(record.writtenMs)}, and ${name} wrote at ${isoTime(written)}: it may lack what was signed`,
    [...recordAdvice(client, folder, network), 'where both are copies, copy them with their times: cp -a, rsync -a'],
  );
}

/** @throws FirstStepFailure while it lies ahead */
function refuseUntil(endsAt: number, what: string): void {
  if (endsAt <= systemClock.now()) return;
  throw new FirstStepFailure(`${what}, less than ${QUIET_EPOCHS} epochs ago`, [
    `repeat this command after ${isoTime(endsAt)}: what still signs shows by then that it is not stopped`,
  ]);
}

function epochMs({ slotDurationMs, slotsPerEpoch }: ChainTime): number {
  return slotDurationMs * slotsPerEpoch;
}

/** @throws FirstStepFailure unless it is */
async function askWhetherStopped({ name }: Source, { stopped }: MigrateFlags, terminal: Terminal): Promise<void> {
  if (stopped) return;
  const why =
    `Two signers with one key get its validator slashed. ${name} has to be stopped for good, here and on every other ` +
    'machine that has these keys, with what starts it again (systemd, Docker).';
  if (!canAsk(terminal))
    throw new FirstStepFailure(
      'not confirmed: there is no terminal to ask on',
      [why, 'add --stopped when it is'],
      EXIT.notConfirmed,
    );
  note(terminal, why);
  const typed = await readLine(terminal, 'Type the word "stopped" when it is, anything else to end: ');
  if (typed !== 'stopped') throw new FirstStepFailure('not confirmed: nothing was written', [], EXIT.notConfirmed);
}

interface Import {
  readonly config: Config;
  readonly record: ClientRecord;
  /** Gets the keys that the record names, and has to have some of these. */
  readonly named: Set<string>;
  readonly keys: readonly OpenedKey[];
}

/** @returns other than 0 when it said why the record is not good @throws FirstStepFailure */
async function importRecord(
  { name }: Source,
  { config, record, named, keys }: Import,
  terminal: Terminal,
): Promise<ExitCode> {
  // A new store warns that it knows nothing: what is imported now is what it will know.
  const use = { stderr: terminal.stderr, isForJump: false, needsBound: false, level: 'error' } as const;
  const read = async (open: CommandStore): Promise<ExitCode> => {
    const code =
      'database' in record
        ? await importWeb3Signer(open, { database: record.database, options: { named, strategy: 'minimal' } })
        : await importFile(open, record.bytes(), { named });
    if (code !== EXIT.ok) return code;
    if (!keys.some(({ publicKey }) => named.has(publicKey)))
      throw new FirstStepFailure('the record names none of these keys', ['is it the record of this client?']);
    await refuseYoungRecord(name, open.backend, open.network.time);
    return code;
  };
  try {
    return await withStore(config, use, (store) => read({ ...store, clock: systemClock, terminal }));
  } catch (error) {
    if (error instanceof FirstStepFailure) throw error;
    const message = error instanceof Error ? error.message : String(error);
    const { problem, remedies = [], exitCode } = importFailure(error) ?? { problem: message };
    const network = problem.includes('of another network') ? ['name the network of the keys: --network NAME'] : [];
    throw new FirstStepFailure(problem, [...remedies, ...network], exitCode);
  }
}

/** By what is in it: its last vote or block. */
async function refuseYoungRecord(
  name: string,
  backend: Pick<SlashingBackend, 'marksBeyond'>,
  time: ChainTime | undefined,
): Promise<void> {
  if (time === undefined) return;
  const { genesisTimeSeconds, slotDurationMs, slotsPerEpoch } = time;
  const slot = Math.floor((systemClock.now() - genesisTimeSeconds * 1000) / slotDurationMs);
  const epoch = Math.floor(slot / slotsPerEpoch);
  const floor = {
    slot: slot - QUIET_EPOCHS * slotsPerEpoch - 1,
    targetEpoch: epoch - QUIET_EPOCHS - 1,
    sourceEpoch: Number.MAX_SAFE_INTEGER,
  };
  const ends = [...(await backend.marksBeyond(floor)).values()].map(({ slot, targetEpoch }) =>
    Math.max((slot ?? 0) + 1, ((targetEpoch ?? 0) + 1) * slotsPerEpoch),
  );
  if (ends.length === 0) return;
  const last = genesisTimeSeconds * 1000 + Math.max(...ends) * slotDurationMs;
  refuseUntil(last + QUIET_EPOCHS * epochMs(time), `${name} signed for the time up to ${isoTime(last)}`);
}

interface Sorted {
  readonly known: readonly OpenedKey[];
  readonly unknown: readonly OpenedKey[];
}

const ASIDE = 'without-record';
const LIST = 'validator_definitions.yml';

/** The configuration last. @throws FirstStepFailure */
function writeFolder({ client, folder }: Source, to: SignerFolder, { known, unknown }: Sorted, text: string): void {
  const below = (base: string, keys: readonly OpenedKey[]) =>
    keys.flatMap(({ files }) => files.map(({ path, text }) => ({ path: join(base, path), text })));
  const own = filesOf(to, text, true);
  const token = own.find(({ path }) => path === to.tokens.client)?.text ?? readFileSync(to.tokens.client, 'utf8');
  const url = `http://any:${String(token).trim()}@${SIGNER_URL.host}`;
  const list =
    client === 'lighthouse'
      ? [{ path: join(to.path, LIST), text: remoteDefinitions(folder, new Set(known.map(keyOf)), url) }]
      : [];
  const files = [...below(to.path, known), ...below(join(to.path, ASIDE), unknown), ...list, ...own];
  writeAll([to.keys, to.passwords], files);
}

function keyOf({ publicKey }: OpenedKey): string {
  return publicKey;
}

function toldOf(source: Source, to: SignerFolder, { known, unknown }: Sorted, { keys, client = [] }: MigrateFlags) {
  const isLighthouse = source.client === 'lighthouse';
  const asWell = source.client === 'web3signer' || isLighthouse ? [] : [source.client];
  const aside = join(to.path, ASIDE);
  return {
    rows: [
      [to.keys, plural(known.length, 'key')],
      [to.passwords, 'their passwords'],
      ...(isLighthouse ? [[join(to.path, LIST), "Lighthouse's list of validators, for this signer"] as const] : []),
      ...(unknown.length > 0 ? [[aside, `${plural(unknown.length, 'key')} without a record`] as const] : []),
    ] as const,
    before: [
      ...takeAway(source, to, keys),
      ...(unknown.length === 0
        ? []
        : [
            `Of ${plural(unknown.length, 'key')} the record says nothing. Only for keys that have never signed:`,
            `  cp -r ${shellWord(shown(aside))}/. ${shellWord(shown(to.path))}/`,
          ]),
    ],
    clients: isLighthouse && client.length === 0 ? undefined : [...new Set([...asWell, ...client])],
  };
}

/** The commands that keep the client from signing with them. */
function takeAway({ client, name, folder }: Source, to: SignerFolder, keys: string | undefined): readonly string[] {
  const own = join(folder, client === 'prysm' ? '' : CLIENT_FOLDERS[client].keys);
  const moved = [...(client === 'prysm' ? [] : [own]), ...(keys === undefined ? [] : [resolve(keys)])].filter((path) =>
    existsSync(path),
  );
  return [
    `${name} must never sign with these keys again. Disable what starts it, and take its keys away:`,
    ...moved.map((path) => `  mv ${shellWord(path)} ${shellWord(`${path}.moved`)}`),
    ...(client === 'prysm' ? ['  and its wallet: the folder --wallet-dir'] : []),
    ...(client === 'lighthouse'
      ? [`  mkdir -m 700 ${shellWord(own)} && cp ${shellWord(shown(join(to.path, LIST)))} ${shellWord(own)}/`]
      : []),
    'Run the same command again: it says whether a key is still there.',
  ];
}

/** After a migration that is whole. */
function sayWhetherItCanSign(
  source: Source,
  to: SignerFolder,
  found: FoundKeys,
  { keys }: MigrateFlags,
  terminal: Terminal,
): ExitCode {
  const { client, name, folder } = source;
  if (!readFileSync(to.configuration, 'utf8').startsWith(`# Written by strongroom migrate --from ${client}.`))
    throw new FirstStepFailure(`nothing is overwritten, and there is already ${shown(to.configuration)}`, [
      'name another folder: --to FOLDER',
    ]);
  const count = found.keys.filter(({ file }) => !hasForeignName(basename(file))).length;
  if (count > 0)
    throw new FirstStepFailure(
      `${shown(to.path)} is migrated, and ${name} still has ${plural(count, 'key')} in ${folder}`,
      takeAway(source, to, keys),
    );
  terminal.stdout.write(`${shown(to.path)} is migrated, and there is no key of ${name} in ${folder}.
`);
  return EXIT.ok;
}
