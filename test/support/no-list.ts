// What a client gets in place of the list of keys (specification/signing.md#public-keys).

import { expect } from 'vitest';

/** A refusal where a client expects the list of keys: the end of the connection, without a byte. */
export async function expectNoList(asked: Promise<unknown>): Promise<void> {
  await expect(asked).rejects.toMatchObject({ message: 'fetch failed', cause: { code: 'UND_ERR_SOCKET' } });
}
