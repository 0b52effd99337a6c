// `strongroom slashing import --from-web3signer`: merges the database of a Web3Signer that is stopped for good. All of
// it is merged, or nothing; keys that were disabled there are retired before, because a signer that refused them had a
// reason. The database's address may carry a password: it is shown nowhere.

import { sayConflicts } from '../../command-line/conflicts.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { sayFailure } from '../../command-line/failure.ts';
import { note } from '../../command-line/terminal.ts';
import { BrokenReference } from '../config/values/broken-reference.ts';
import { readSecret } from '../config/values/secret.ts';
import { type PostgresAddress, parsePostgresUrl } from '../slashing/postgres/connection/address.ts';
import { PostgresConnections } from '../slashing/postgres/connection/connections.ts';
import type { ImportSummary, ValidatorHistory } from '../slashing/types.ts';
import { readWeb3Signer, type Web3SignerFindings } from '../slashing/web3signer/database.ts';
import { mergeWeb3Signer } from '../slashing/web3signer/merge.ts';
import type { OpenStore } from './slashing-parts.ts';

/** Keys between two lines of progress: each may have a hundred thousand votes. */
const PROGRESS_KEYS = 100;
/** A slot: a signer that goes on writes in it. */
const LOOKS_APART_MS = 12_000;

/** @throws Web3SignerDatabaseError, SignerError; nothing is merged then */
export async function importWeb3Signer(open: OpenStore): Promise<number> {
  const { backend, network, clock, terminal, args, logger } = open;
  const address = addressOf(open);
  if (typeof address === 'string') {
    sayFailure(terminal, 'strongroom', `--from-web3signer: ${address}`);
    return EXIT.failed;
  }
  const connections = new PostgresConnections(
    { address, poolSize: 1, forceIpv4: false },
    { log: logger.module('slashing'), clock },
  );
  try {
    const { genesisValidatorsRoot } = network;
    const { histories, findings } = readWeb3Signer(connections, {
      genesisValidatorsRoot,
      looksApartMs: LOOKS_APART_MS,
    });
    const reading = { histories: withProgress(histories, open), findings };
    const summary = await mergeWeb3Signer(backend, reading, { strategy: args.strategy });
    const found = findings();
    report(summary, found, open);
    return summary.conflicts > 0 ? EXIT.conflicts : EXIT.ok;
  } finally {
    await connections.close();
  }
}

/** Or what is wrong with it. */
function addressOf({ args, terminal }: OpenStore): PostgresAddress | string {
  const text = args.web3signer ?? '';
  const { secret } = readSecret(text, { env: terminal.env });
  if (secret instanceof BrokenReference) return `${secret.problem}; ${secret.remedy}`;
  const url = secret.reveal().toString('utf8');
  if (url.startsWith('jdbc:')) return 'write it without jdbc:, and with the user as postgresql://USER@HOST/DATABASE';
  const reading = parsePostgresUrl(url);
  if (reading.kind === 'invalid') return reading.problem;
  if (text === url && reading.password !== '') {
    note(
      terminal,
      'warning: --from-web3signer holds a password, which other users can see: put the URL into a variable and write env:NAME',
    );
  }
  return reading;
}

async function* withProgress(
  histories: AsyncIterable<ValidatorHistory>,
  { terminal }: OpenStore,
): AsyncGenerator<ValidatorHistory> {
  let validators = 0;
  for await (const history of histories) {
    validators += 1;
    if (validators % PROGRESS_KEYS === 0) note(terminal, `${validators} keys …`);
    yield history;
  }
}

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
  if (slot !== null || epoch !== null) {
    note(
      terminal,
      'Web3Signer signed nothing at or beyond its high watermark. This signer has no such limit and goes on beyond it.',
    );
  }
  sayConflicts(terminal, 'the database', summary.conflicts, summary.conflicting);
}
