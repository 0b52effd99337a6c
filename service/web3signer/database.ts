// Web3Signer's slashing database: what imports it. Its rows are the history of these keys, so nothing is signed before
// they are here. The password of the database is never repeated.

import type { GivenOptions } from './given.ts';

export const DATABASE_URL = 'slashing-protection-db-url';

export function importCommandLine(given: GivenOptions): string {
  const command = 'strongroom slashing import --from-web3signer env:WEB3SIGNER_DB -c strongroom.yaml';
  return `WEB3SIGNER_DB='${databaseUrl(given)}' ${command}`;
}

/** `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, from what JDBC takes, with that very word for the password. */
function databaseUrl(given: GivenOptions): string {
  const text = given.get(DATABASE_URL)?.value ?? '';
  const url = /^jdbc:postgresql:\/\/[^,]+$/i.test(text) ? URL.parse(text.slice('jdbc:'.length)) : null;
  if (url === null) return 'postgresql://USER:PASSWORD@HOST/DATABASE';
  const user = given.get('slashing-protection-db-username')?.value ?? url.searchParams.get('user') ?? 'USER';
  const database = url.pathname.replaceAll(/[^\w./%-]/g, '');
  return `postgresql://${encodeURIComponent(user)}:PASSWORD@${url.host}${database}`;
}
