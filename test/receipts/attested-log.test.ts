// A log whose security module does not attest at the start: it is not kept until the module does, loses nothing
// meanwhile, and is whole afterwards.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { identityBinding } from '../../common/receipts/identity.ts';
import { readIdentity } from '../../common/receipts/read-identity.ts';
import { verifyReceipts } from '../../common/receipts/verify.ts';
import { receiptsFolder } from '../../service/receipts-folder.ts';
import { openReceiptLog } from '../../signer/receipts/log.ts';
import { recordingLog } from '../support/recording-log.ts';
import { headOf, keptBoots } from './kept.ts';
import { testEntry } from './logs.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-attested-log-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

it('a security module that does not attest is asked again with each head, and the log begins before the first decision', async () => {
  let [answers, asked] = [false, 0];
  const storage = receiptsFolder(folder);
  const log = await openReceiptLog(
    { intervalSeconds: 60, maxWaitingEntries: 2000, required: true, retentionDays: null },
    {
      genesisValidatorsRoot: `0x${'d8'.repeat(32)}`,
      attest: async (userData) => {
        asked += 1;
        if (!answers) throw new Error('the security module does not attest');
        return userData;
      },
      storage,
      facts: () => ({ slashing: null, latch: null, auth_revision: null }),
      clock: { now: () => 1_800_000_000_000, monotonic: () => 0 },
      log: recordingLog(),
    },
  );
  // What `receipts.required` asks: nothing would be signed.
  expect({ asked, isKept: log.isKept, head: log.latestHead }).toEqual({ asked: 1, isKept: false, head: undefined });
  for (let index = 0; index < 300; index++) expect(log.record(testEntry(1, index))).toBe(true);
  expect(await log.keepHead()).toBe(false);
  expect({ asked, isKept: log.isKept, boots: await storage.boots() }).toEqual({ asked: 2, isKept: false, boots: [] });

  answers = true;
  expect(await log.keepHead()).toBe(true);
  expect(log.isKept).toBe(true);
  await log.close();
  expect(asked).toBe(3);

  const kept = await keptBoots(storage);
  const identity = readIdentity(kept[0]?.identity ?? '');
  expect({ kind: identity?.kind, lost: log.lost }).toEqual({ kind: 'attested', lost: 0 });
  expect(identity?.document).toEqual(identity && identityBinding(identity));
  expect(kept[0]?.heads.map((note) => headOf(note).size).toSorted((one, other) => one - other)[0]).toBe(0);
  const judge = (document: Buffer, userData: Buffer): boolean => document.equals(userData);
  expect(verifyReceipts(kept, judge)).toMatchObject({ verdict: 'whole', findings: [] });
});
