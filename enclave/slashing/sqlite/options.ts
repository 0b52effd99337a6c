// Which database, of which network, under which integrity codes.

import type { RowIntegrity } from '../history/integrity.ts';

export interface DatabaseOptions {
  /** An existing file (preparePrivateFile). */
  readonly path: string;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  readonly integrity: RowIntegrity;
}
