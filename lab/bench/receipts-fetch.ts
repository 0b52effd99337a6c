// `lab/bench/receipts-fetch.ts [--decisions N]`: what `operator receipts fetch` of a log of so many decisions costs.
// The product's own log writes it to a folder, a real signer serves it, and the command runs as a process of its own,
// the first time and once more with all of it here. The time is the process's own on a core, beside the clock's.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../../common/observe/clock.ts';
import { receiptsFolder } from '../../service/receipts-folder.ts';
import { openReceiptLog } from '../../signer/receipts/log.ts';
import { testEntry } from '../../test/receipts/logs.ts';
import { deploy } from '../../test/support/deployment.ts';
import { recordingLog } from '../../test/support/recording-log.ts';
import { TEST_TOKEN } from '../../test/support/requests.ts';

const { values } = parseArgs({ options: { decisions: { type: 'string', default: '10000000' } } });
const decisions = Number(values.decisions);
const ROOT = join(import.meta.dirname, '../..');
const MAX_WAITING = 131_072;
/** Of the fetching process, which the kernel counts in hundredths of a second. */
const TICKS = 100;
const folder = mkdtempSync(join(tmpdir(), 'strongroom-bench-fetch-'));

async function writeLog(path: string): Promise<void> {
  const log = await openReceiptLog(
    { intervalSeconds: 60, maxWaitingEntries: MAX_WAITING, required: false, retentionDays: null },
    {
      genesisValidatorsRoot: `0x${'d8'.repeat(32)}`,
      attest: undefined,
      storage: receiptsFolder(path),
      facts: () => ({ slashing: null, latch: null, auth_revision: null }),
      clock: systemClock,
      log: recordingLog(),
    },
  );
  while (log.size < decisions) {
    for (let count = Math.min(256, decisions - log.size); count > 0; count--) log.record(testEntry(1, log.size));
    await nextTurn();
    while (log.entriesInMemory > MAX_WAITING / 2) await nextTurn();
    if (log.size % 65_536 === 0) await log.keepHead();
  }
  await log.close();
  if (log.lost > 0) throw new Error(`${log.lost} decisions were lost`);
}

async function fetchTo(target: string, url: string): Promise<void> {
  const startedAt = performance.now();
  const argv = ['operator', 'receipts', 'fetch', target, '--signer-url', url, '--allow-plaintext-signer'];
  const child = spawn(join(ROOT, 'bin/strongroom'), argv, {
    env: { ...process.env, SVC_OPERATOR_TOKEN: TEST_TOKEN },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let [seconds, peakMegabytes] = [0, 0];
  const sampling = setInterval(() => {
    try {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      seconds = Math.max(seconds, (Number(fields[11]) + Number(fields[12])) / TICKS);
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      peakMegabytes = Math.max(peakMegabytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
    } catch {
      // it has ended
    }
  }, 50);
  const [code] = (await once(child, 'exit')) as [number];
  clearInterval(sampling);
  const wall = (performance.now() - startedAt) / 1000;
  console.log(
    `fetch of ${decisions} decisions: exit code ${code}, ${wall.toFixed(1)} s, ${seconds.toFixed(1)} s of CPU, ` +
      `${peakMegabytes.toFixed(0)} MB at most, load average ${loadavg()[0]?.toFixed(1)}`,
  );
}

try {
  const path = join(folder, 'signer');
  await writeLog(path);
  const rules = [{ effect: 'allow', scopes: ['receipts'] }];
  const policies = [{ name: 'auditor', rules }];
  const tokens = [{ name: 'auditor', secret: TEST_TOKEN, policies: ['auditor'] }];
  const signer = await deploy(1, { static_auth: { policies, tokens } }).start({
    config: { receipts: { storage: 'folder', path } },
  });
  for (let call = 0; call < 2; call++) await fetchTo(join(folder, 'auditor'), signer.url);
  await signer.stop();
} finally {
  rmSync(folder, { recursive: true });
}
