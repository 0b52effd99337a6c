// Why a slashing store could not be opened, as one line: the option that names the store, the fault, the system's
// message, and what to do. The last line of a start is often the only one that people read. The line contains no
// password: it shows a URL without one.

import { SignerError } from '../../api/errors.ts';
import type { Config } from '../../config/options.ts';

const OTHER_NETWORK = 'correct `network`, or give each network a store of its own';

export function openingFailure(config: Config['anti_slashing'], error: unknown): Error {
  if (!(error instanceof SignerError)) return error instanceof Error ? error : new Error(String(error));
  const { problem, isOtherNetwork } = problemOf(error);
  const remedy = isOtherNetwork ? `: ${OTHER_NETWORK}` : '';
  return new Error(`${storeOf(config)}: ${problem}${remedy}`, { cause: error });
}

/** The same in two parts, for `server --check`. */
export function openingProblem(error: unknown): { readonly problem: string; readonly remedy: string } {
  if (!(error instanceof SignerError)) {
    const problem = error instanceof Error ? error.message : String(error);
    return { problem, remedy: 'correct the option, or what it names' };
  }
  const { problem, isOtherNetwork } = problemOf(error);
  const code = error.detail?.['code'];
  const remedy = typeof code === 'string' ? REMEDIES[code] : undefined;
  return { problem, remedy: isOtherNetwork ? OTHER_NETWORK : (remedy ?? 'put the store right, or name another') };
}

const CORRECT_HOST = 'start the database, or correct host and port; a firewall may be between';
/** By the code of the system and of PostgreSQL (Appendix A of its manual). */
const REMEDIES: Readonly<Record<string, string>> = {
  ECONNREFUSED: CORRECT_HOST,
  ETIMEDOUT: CORRECT_HOST,
  EHOSTUNREACH: CORRECT_HOST,
  ENOTFOUND: 'correct the name of the host',
  EAI_AGAIN: 'correct the name of the host, or the name server of this machine',
  '28000': 'correct user and password, or allow this user in pg_hba.conf',
  '28P01': 'correct user and password',
  '3D000': 'create the database, or correct its name',
  '53300': 'raise max_connections of the server, or end other clients',
};

function problemOf(error: SignerError): { readonly problem: string; readonly isOtherNetwork: boolean } {
  const problem = error.hint ?? error.message;
  const said = [...saidBy(error)].filter((text) => text !== '' && !problem.includes(text));
  const because = said.length === 0 ? '' : ` (${[...new Set(said)].join(', ')})`;
  return { problem: `${problem}${because}`, isOtherNetwork: problem.includes('genesis validators root') };
}

function storeOf({ backend, path, url, table }: Config['anti_slashing']): string {
  switch (backend) {
    case 'sqlite':
      return `anti_slashing.path ${path}`;
    case 'postgres':
      return `anti_slashing.url ${String(url)}`;
    case 'dynamodb':
      return `anti_slashing.table ${table}`;
    case 'noop':
      return 'anti_slashing.backend noop';
  }
}

/** What the system, the driver or the service said: its code, and its words where it has any. */
function* saidBy({ detail, cause }: SignerError): Generator<string> {
  if (typeof detail?.['error'] === 'string') yield detail['error'];
  for (const fact of [detail?.['code'], detail?.['fault']]) if (typeof fact === 'string') yield fact;
  if (cause instanceof SignerError) yield* saidBy(cause);
  if (!(cause instanceof Error) || cause instanceof SignerError) return;
  // A failed system call says it by its code; its words repeat the path.
  if ('code' in cause && typeof cause.code === 'string' && 'syscall' in cause) yield cause.code;
  else yield cause.message;
}
