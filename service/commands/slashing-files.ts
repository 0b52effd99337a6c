// `strongroom slashing export|import`: EIP-3076 files out of the store and into it, and from a database of Web3Signer.

import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ACCEPT_FUTURE } from '../../common/command-line/accept-future.ts';
import { ArgumentsError } from '../../common/command-line/arguments.ts';
import { sayConflicts } from '../../common/command-line/conflicts.ts';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { fileFault } from '../../common/command-line/file-faults.ts';
import { outputFile, writeOutput } from '../../common/command-line/output-file.ts';
import { plural } from '../../common/command-line/printable.ts';
import { NO_PROGRESS, type Progress, showProgress } from '../../common/command-line/progress.ts';
import { note, type Printed } from '../../common/command-line/terminal.ts';
import { bounded } from '../../common/command-line/text.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { BrokenReference, readSecret } from '../../signer/config/values/secret.ts';
import { WHY } from '../../signer/slashing/doubt/doubts.ts';
import { readInterchange, writeInterchange } from '../../signer/slashing/interchange/file.ts';
import { type PostgresAddress, parsePostgresUrl } from '../../signer/slashing/postgres/connection/address.ts';
import { PostgresConnections } from '../../signer/slashing/postgres/connection/connections.ts';
import type { ImportOptions, ImportSummary, ValidatorHistory } from '../../signer/slashing/types.ts';
import { readSecretFile } from '../config/secret-file.ts';
import {
  mergeWeb3Signer,
  readWeb3Signer,
  type Web3SignerFindings,
  type Web3SignerReading,
} from '../web3signer/records.ts';
import { type OpenStore, readPublicKeys, slashingCommand } from './slashing-command.ts';
import { noteWeb3Signer } from './slashing-notes.ts';
import { web3SignerName } from './web3signer-name.ts';

const NOTHING_EXPORTED =
  'warning: the file says nothing of any key: whoever imports it knows of no earlier signature. Is this the store?';
/** What a key takes along is all that the next signer knows of it. */
const LACKING =
  'The file could lack what was signed, and a key that moves with it be slashed. Raise the store first, by a start ' +
  'or by `strongroom slashing jump`: the file then refuses everything up to the present';
const MAX_PATH_CHARACTERS = 200;

export const exportCommand = slashingCommand(
  {
    summary: 'Write an EIP-3076 interchange file (version 5) to stdout or to a file',
    flags: {
      ...outputFile('Where to; stdout when not given'),
      pubkeys: { placeholder: 'KEY,KEY', meaning: 'Only these keys' },
    },
    examples: [
      'strongroom slashing export -c strongroom.yaml --output slashing_protection.json',
      'strongroom slashing export -c strongroom.yaml --pubkeys 0x8000…,0xa99a… > two-keys.json',
    ],
  },

  ({ values: { output, force, pubkeys } }) => {
    const publicKeys = pubkeys === undefined ? undefined : readPublicKeys(pubkeys.split(','));
    return (open) => exportFile(open, { publicKeys, output, force });
  },
  { needsBound: true },
);

export const importCommand = slashingCommand(
  {
    summary: 'Merge an EIP-3076 file, never weakening what is there',
    usage: [
      'FILE -c CONFIG [--as-minimal | --complete] [--accept-future]',
      '--from-web3signer DATABASE -c CONFIG [--complete] [--accept-future]',
    ],
    notes: [
      'Import before the keys are loaded. A file is refused as a whole when it is wrong. A merge that is interrupted is ' +
        'repeated, and was never weaker. A key that is new to the store ' +
        'keeps the entries of the file. A key that the store has records of is merged as minimal: everything up to the ' +
        'highest entries of the file is refused, because the file may be pruned or say less than the key signed ' +
        'elsewhere, and what lies between would look safe.',
      'From a database of Web3Signer: it is that of a Web3Signer that is stopped for good, and nothing in it is changed. ' +
        'It is merged as minimal, so a second run changes nothing. Keys that are disabled there are retired here, ' +
        'and keys with a slot or an epoch beyond 2^53 - 1. ' +
        'Refused while another program is connected to the database, when its rows change, of another network, and of ' +
        'a schema before version 7 or after 12.',
    ],
    argument: { name: 'FILE', meaning: 'An EIP-3076 file, or - for stdin', count: 'optional' },
    flags: {
      'as-minimal': { meaning: 'Merge keys that are new to the store as minimal, too' },
      complete: {
        meaning:
          "Merge keys that the store has records of by EIP-3076's complete strategy instead. Only for a file that is " +
          'known to list everything that its keys ever signed elsewhere: then nothing more than that is refused',
      },
      'accept-future': { meaning: ACCEPT_FUTURE },
      'from-web3signer': {
        placeholder: 'DATABASE',
        meaning:
          'postgresql://USER@HOST/DATABASE as in anti_slashing.url (TLS unless ?sslmode=disable), or env:NAME of a ' +
          'variable or file:/PATH of a file that holds it, which keeps a password from other users',
      },
    },
    examples: [
      'strongroom slashing import slashing_protection.json -c strongroom.yaml',
      'strongroom slashing import newer.json --as-minimal -c strongroom.yaml',
      'zcat slashing_protection.json.gz | strongroom slashing import - -c strongroom.yaml',
      'WEB3SIGNER_DB=postgresql://… strongroom slashing import --from-web3signer env:WEB3SIGNER_DB -c strongroom.yaml',
    ],
  },

  ({ values, words: [file] }) => {
    const { 'from-web3signer': database, 'as-minimal': asMinimal, complete, 'accept-future': acceptsFuture } = values;
    if ((file === undefined) === (database === undefined))
      throw new ArgumentsError('name one file to import, or - for stdin, or --from-web3signer and no file');
    if (asMinimal && complete) throw new ArgumentsError('--as-minimal and --complete contradict each other');
    // A database is merged as minimal unless told: a second run then changes nothing, and nothing in between is signed.
    if (database !== undefined)
      return (open) =>
        importWeb3Signer(open, { database, options: { strategy: complete ? 'complete' : 'minimal', acceptsFuture } });
    const strategy = complete ? 'complete' : asMinimal ? 'minimal' : 'by_key';
    return (open) =>
      importFile(open, file === undefined || file === '-' ? stdinOf(open) : bytesOf(file), { strategy, acceptsFuture });
  },
);

interface Export {
  readonly publicKeys: readonly string[] | undefined;
  readonly output: string | undefined;
  readonly force: boolean;
}

async function exportFile(open: OpenStore, wanted: Export): Promise<ExitCode> {
  if (open.doubt !== undefined) {
    sayFailure(open.terminal, 'strongroom', `nothing is exported: ${WHY[open.doubt.cause]}. ${LACKING}`);
    return EXIT.failed;
  }
  const validators = await writeHistories(open, wanted);
  note(open.terminal, `exported the records of ${plural(validators, 'key')}`);
  if (validators === 0) note(open.terminal, NOTHING_EXPORTED);
  return EXIT.ok;
}

async function writeHistories(
  { backend, network, terminal }: OpenStore,
  { publicKeys, output, force }: Export,
): Promise<number> {
  const { stdout }: Printed = terminal;
  // A file that goes to the terminal itself shows how far it is.
  const isSeen = output === undefined && stdout.isTTY === true;
  using progress = isSeen ? NO_PROGRESS : showProgress(terminal, { doing: 'exporting', unit: 'keys' });
  let validators = 0;
  async function* counted(): AsyncGenerator<ValidatorHistory> {
    for await (const history of backend.exportHistories(publicKeys)) {
      validators += 1;
      progress.reach(validators);
      yield history;
    }
  }
  const text = Readable.from(writeInterchange(counted(), encodeHex(network.genesisValidatorsRoot)));
  if (output === undefined) await pipeline(text, terminal.stdout, { end: false });
  else await writeOutput(output, force, (file) => file.writeFile(text));
  return validators;
}

/** What the import of a record does for a migration, too. */
interface RecordImport extends ImportOptions {
  /** Gets the keys that the record names. */
  readonly named?: Set<string> | undefined;
}

export async function importFile(
  open: OpenStore,
  source: AsyncIterable<Uint8Array>,
  options: RecordImport,
): Promise<ExitCode> {
  const { network, terminal } = open;
  const histories = readInterchange(source, encodeHex(network.genesisValidatorsRoot));
  const summary = await merge(open, histories, options);
  terminal.stdout.write(
    `keys: ${summary.validators}\nblocks: ${summary.blocks}\nattestations: ${summary.attestations}\n` +
      `already present: ${summary.alreadyPresent}\nconflicts: ${summary.conflicts}\n`,
  );
  sayConflicts(terminal, 'the file', summary.conflicts, summary.conflicting);
  return summary.conflicts > 0 ? EXIT.conflicts : EXIT.ok;
}

async function merge(
  { backend, terminal }: OpenStore,
  histories: AsyncIterable<ValidatorHistory>,
  { named, ...options }: RecordImport,
): Promise<ImportSummary> {
  using progress = showProgress(terminal, { doing: 'reading', unit: 'keys' });
  return await backend.importHistories(withProgress(histories, progress, named), options);
}

function stdinOf({ terminal }: OpenStore): AsyncIterable<Buffer> {
  return terminal.stdin as AsyncIterable<Buffer>;
}

export async function* bytesOf(path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path);
  } catch (error) {
    throw new Error(fileFault(bounded(path, MAX_PATH_CHARACTERS), 'read', error), { cause: error });
  }
}

// `strongroom slashing import --from-web3signer`: merges the database of a Web3Signer that is stopped for good. All of
// it is merged, or nothing; keys that were disabled there are retired before, because a signer that refused them had a
// reason. The database's address may carry a password: it is shown nowhere.

/** A slot: a signer that goes on writes in it. */
const LOOKS_APART_MS = 12_000;

interface DatabaseImport {
  /** Where the database is, as it was written: a URL, or a reference to one. */
  readonly database: string;
  readonly options: RecordImport;
}

/** @throws Web3SignerDatabaseError, SignerError; nothing is merged then */
export async function importWeb3Signer(open: OpenStore, { database, options }: DatabaseImport): Promise<ExitCode> {
  const { backend, keeper, network, clock, terminal, logger } = open;
  const address = addressOf(database, terminal);
  if (typeof address === 'string') {
    sayFailure(terminal, 'strongroom', `the database of Web3Signer: ${address}`);
    return EXIT.failed;
  }
  const connections = new PostgresConnections(
    { address, poolSize: 1, forceIpv4: false },
    { log: logger.module('slashing'), clock },
  );
  const merge = async ({ histories, findings }: Web3SignerReading): Promise<ImportSummary> => {
    using progress = showProgress(terminal, { doing: 'reading', unit: 'keys' });
    const { named, ...how } = options;
    return await mergeWeb3Signer(backend, { histories: withProgress(histories, progress, named), findings }, how);
  };
  try {
    const { genesisValidatorsRoot } = network;
    const reading = readWeb3Signer(connections, {
      genesisValidatorsRoot,
      looksApartMs: LOOKS_APART_MS,
    });
    const summary = await merge(reading);
    await noteWeb3Signer(keeper, web3SignerName(address));
    const found = reading.findings();
    report(summary, found, open);
    return summary.conflicts > 0 ? EXIT.conflicts : EXIT.ok;
  } finally {
    await connections.close();
  }
}

/** Or what is wrong with it. */
function addressOf(text: string, terminal: OpenStore['terminal']): PostgresAddress | string {
  const { secret } = readSecret(text, { references: { env: terminal.env, readFile: readSecretFile } });
  if (secret instanceof BrokenReference) return `${secret.problem}; ${secret.remedy}`;
  const url = secret.reveal().toString('utf8');
  if (url.startsWith('jdbc:')) return 'write it without jdbc:, and with the user as postgresql://USER@HOST/DATABASE';
  const reading = parsePostgresUrl(url);
  if (reading.kind === 'invalid') return reading.problem;
  if (text === url && reading.password !== '') {
    note(
      terminal,
      'warning: the URL of the database holds a password, which other users can see: put it into a variable and write env:NAME',
    );
  }
  return reading;
}

/** The store merges when it has read the last one. */
async function* withProgress(
  histories: AsyncIterable<ValidatorHistory>,
  progress: Progress,
  named?: Set<string>,
): AsyncGenerator<ValidatorHistory> {
  let validators = 0;
  for await (const history of histories) {
    named?.add(history.publicKey);
    validators += 1;
    progress.reach(validators);
    yield history;
  }
  progress.begin({ doing: `merging the records of ${plural(validators, 'key')}` });
}

const BEYOND =
  'Web3Signer signed numbers with these keys that no chain reaches; those rows are left out, and the keys sign nothing ' +
  'here. Do not reinstate one that signed a vote: later votes may be surrounded by it.';

function report(summary: ImportSummary, found: Web3SignerFindings, { terminal }: OpenStore): void {
  const { slot, epoch } = found.highWatermark;
  terminal.stdout.write(
    `keys: ${summary.validators}\nblocks: ${summary.blocks}\nattestations: ${summary.attestations}\n` +
      `low watermarks: ${found.lowWatermarks}\n` +
      `high watermark: ${slot === null && epoch === null ? 'none' : `slot ${slot ?? 'none'}, epoch ${epoch ?? 'none'}`}\n` +
      `already present: ${summary.alreadyPresent}\nconflicts: ${summary.conflicts}\n` +
      `disabled there, retired here: ${found.disabled.length}\n`,
  );
  for (const publicKey of found.disabled) terminal.stdout.write(`retired: ${publicKey}\n`);
  if (found.disabled.length > 0) {
    note(terminal, '`strongroom slashing reinstate KEY…` lets a key sign that was disabled in Web3Signer.');
  }
  for (const publicKey of found.beyond) terminal.stdout.write(`beyond 2^53 - 1 there, retired here: ${publicKey}\n`);
  if (found.beyond.length > 0) note(terminal, BEYOND);
  if (slot !== null || epoch !== null) {
    note(
      terminal,
      'Web3Signer signed nothing at or beyond its high watermark. This signer has no such limit and goes on beyond it.',
    );
  }
  sayConflicts(terminal, 'the database', summary.conflicts, summary.conflicting);
}
