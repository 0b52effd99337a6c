// `strongroom slashing import --from-web3signer`: merges the database of a Web3Signer that is stopped for good. All of
// it is merged, or nothing; keys that were disabled there are retired before, because a signer that refused them had a
// reason. The database's address may carry a password: it is shown nowhere.

import { sayConflicts } from '../../common/command-line/conflicts.ts';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { plural } from '../../common/command-line/printable.ts';
import { type Progress, showProgress } from '../../common/command-line/progress.ts';
import { note } from '../../common/command-line/terminal.ts';
import { BrokenReference, readSecret } from '../../signer/config/values/secret.ts';
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
import type { CommandStore } from './slashing-command.ts';
import { noteWeb3Signer } from './slashing-notes.ts';
import { web3SignerName } from './web3signer-name.ts';

/** A slot: a signer that goes on writes in it. */
const LOOKS_APART_MS = 12_000;

export interface RecordImport extends ImportOptions {
  /** Gets the keys that the record names. */
  readonly named?: Set<string> | undefined;
}

interface DatabaseImport {
  /** Where the database is, as it was written: a URL, or a reference to one. */
  readonly database: string;
  readonly options: RecordImport;
}

/** @throws Web3SignerDatabaseError, SignerError; nothing is merged then */
export async function importWeb3Signer(open: CommandStore, { database, options }: DatabaseImport): Promise<ExitCode> {
  const { backend, bareStore, network, clock, terminal, logger } = open;
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
    await noteWeb3Signer(bareStore, web3SignerName(address));
    const found = reading.findings();
    report(summary, found, open);
    return summary.conflicts > 0 ? EXIT.conflicts : EXIT.ok;
  } finally {
    await connections.close();
  }
}

/** Or what is wrong with it. */
function addressOf(text: string, terminal: CommandStore['terminal']): PostgresAddress | string {
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
export async function* withProgress(
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

function report(summary: ImportSummary, found: Web3SignerFindings, { terminal }: CommandStore): void {
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
