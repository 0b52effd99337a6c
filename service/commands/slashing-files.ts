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
import { NO_PROGRESS, showProgress } from '../../common/command-line/progress.ts';
import { note, type Printed } from '../../common/command-line/terminal.ts';
import { bounded } from '../../common/command-line/text.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { WHY } from '../../signer/slashing/doubt/doubts.ts';
import { readInterchange, writeInterchange } from '../../signer/slashing/interchange/file.ts';
import type { ImportSummary, ValidatorHistory } from '../../signer/slashing/types.ts';
import { type CommandStore, canonicalKeys, slashingCommand } from './slashing-command.ts';
import { importWeb3Signer, type RecordImport, withProgress } from './slashing-web3signer.ts';

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
    const publicKeys = pubkeys === undefined ? undefined : canonicalKeys(pubkeys.split(','));
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
      importFile(open, file === undefined || file === '-' ? stdinOf(open) : fileBytes(file), {
        strategy,
        acceptsFuture,
      });
  },
);

interface Export {
  readonly publicKeys: readonly string[] | undefined;
  readonly output: string | undefined;
  readonly force: boolean;
}

async function exportFile(open: CommandStore, wanted: Export): Promise<ExitCode> {
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
  { backend, network, terminal }: CommandStore,
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
export async function importFile(
  open: CommandStore,
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
  { backend, terminal }: CommandStore,
  histories: AsyncIterable<ValidatorHistory>,
  { named, ...options }: RecordImport,
): Promise<ImportSummary> {
  using progress = showProgress(terminal, { doing: 'reading', unit: 'keys' });
  return await backend.importHistories(withProgress(histories, progress, named), options);
}

function stdinOf({ terminal }: CommandStore): AsyncIterable<Buffer> {
  return terminal.stdin as AsyncIterable<Buffer>;
}

export async function* fileBytes(path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path);
  } catch (error) {
    throw new Error(fileFault(bounded(path, MAX_PATH_CHARACTERS), 'read', error), { cause: error });
  }
}
