// Why a slashing store could not be opened, as one line, often the only one that people read. It shows a URL without
// its password.

import { SignerError } from '../../api/errors.ts';
import type { Config } from '../../config/options.ts';

export const OTHER_NETWORK = 'correct `network`, or give each network a store of its own';

export function openingFailure(config: Config['anti_slashing'], error: unknown): Error {
  if (!(error instanceof SignerError)) return error instanceof Error ? error : new Error(String(error));
  const { problem, isOtherNetwork } = problemOf(error);
  const remedy = isOtherNetwork ? `: ${OTHER_NETWORK}` : '';
  return new Error(`${storeOf(config)}: ${problem}${remedy}`, { cause: error });
}

export function problemOf(error: SignerError): { readonly problem: string; readonly isOtherNetwork: boolean } {
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
