// Takes keys out of service on this replica while they are changed. What a key signs in these moments comes before the
// end of its tenure, and so into the file. A change that fails gives the copies back, with what is known of them.

import { telling } from '../../api/errors.ts';
import type { Tenures } from '../../tenure.ts';
import type { LoadedKey } from '../loaded-key.ts';
import type { KeyManagementParts } from './management.ts';

/** The caller holds the turn of these keys. Copies that the work does not remove are put back. */
export async function withKeysTakenOut<T>(
  publicKeys: readonly string[],
  { store, table, drain }: Pick<KeyManagementParts, 'store' | 'table' | 'drain'>,
  work: (copies: ReadonlyMap<string, LoadedKey>) => Promise<T>,
  ended: Tenures = new Map(),
): Promise<T> {
  const release = table?.loader.withhold(publicKeys);
  const copies = new Map<string, LoadedKey>();
  try {
    for (const publicKey of publicKeys) {
      const key = store.setAside(publicKey);
      if (key !== undefined) copies.set(publicKey, key);
    }
    // Also of those that were not found: a look at the table may have removed them a moment ago.
    await drain(publicKeys);
    return await work(copies);
  } finally {
    for (const publicKey of copies.keys()) store.putBack(publicKey, ended.get(publicKey));
    release?.();
  }
}

/** How far a change has come when it fails. */
const CAME_TO = {
  nothing: 'nothing was changed: repeat the request',
  unknown:
    'this signer keeps its copies, but a part of the change may be written: signers may refuse the keys (key_retired) until ' +
    'you repeat the request, which finishes it, or import them again',
  ended:
    'the keys have left the slashing store, so no signer of it signs with them, and this signer keeps its copies: repeat the ' +
    'request, which finishes it',
} as const;

interface LeavingKeys {
  /** The copies that were loaded here. */
  readonly copies: ReadonlyMap<string, LoadedKey>;
  /** The numbers that the store answered last. */
  readonly ended: Tenures;
  end(publicKeys: readonly string[]): Promise<void>;
  /** From now on a fault may come after a change. */
  mayChange(): void;
}

/** A change by which keys leave. @throws what the work throws; a SignerError says how far the change came */
export function whileLeaving<T>(
  publicKeys: readonly string[],
  parts: Pick<KeyManagementParts, 'store' | 'table' | 'slashing' | 'drain' | 'log'>,
  work: (leaving: LeavingKeys) => Promise<T>,
): Promise<T> {
  const ended = new Map<string, number>();
  let cameTo: keyof typeof CAME_TO = 'nothing';
  const mayChange = (): void => {
    if (cameTo === 'nothing') cameTo = 'unknown';
  };
  const end = async (leaving: readonly string[]): Promise<void> => {
    if (leaving.length === 0) return;
    mayChange();
    for (const [publicKey, tenure] of await parts.slashing.endTenures(leaving)) ended.set(publicKey, tenure);
    cameTo = 'ended';
  };
  const explained = (copies: ReadonlyMap<string, LoadedKey>): Promise<T> =>
    work({ copies, ended, end, mayChange }).catch((error: unknown) => {
      parts.log.error({ err: error, public_keys: publicKeys, ended: [...ended.keys()] }, CAME_TO[cameTo]);
      return telling(CAME_TO[cameTo])(error);
    });
  return withKeysTakenOut(publicKeys, parts, explained, ended);
}
