// What a test starts it ends: also a signer that does not come up.

import { expect, it } from 'vitest';
import { runningChildren, startSigner } from '../../rehearsal/signer.ts';

const SILENT = [process.execPath, '-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)'] as const;

it('a signer that is not ready in its time is not left running', async () => {
  const started = startSigner({ program: SILENT, logWaitMs: 1 });
  expect(runningChildren()).toHaveLength(1);
  await expect(started).rejects.toThrow('no "ready" in the log');
  expect(runningChildren()).toHaveLength(0);
});
