// Every case runs in a process of its own: limits and dumpability cannot be taken back. Root may lock memory whatever
// the limit is, so the children of root run as nobody; where that cannot be they are skipped, and say what they need.

import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { addonForTests, PROJECT_ROOT } from '../support/addon.ts';
import { otherUser } from '../support/nobody.ts';

const user = otherUser();
const withNative = user !== undefined && addonForTests() && process.platform === 'linux';

interface Report {
  readonly kind?: string;
  readonly memoryLocked?: boolean;
  readonly levels?: string[];
  readonly refusal?: string;
  readonly keys?: number;
  /** What the watch over the keys' memory warned of. */
  readonly said?: string;
  readonly unlockedKeys?: number;
  readonly coreLimit?: string;
  readonly ownerOfProcess?: number;
}

/**
 * Open a core under a limit of locked memory (KiB), apply the policy, load keys until refused; report what happened.
 */
function child(options: { policy: string; prefer?: string; lockKiB?: number; keys?: number }): Report {
  const { policy, prefer = 'native', lockKiB = 256, keys = 1 } = options;
  const program = `
    const { statSync, readFileSync } = await import('node:fs');
    const { openBlsCore } = await import('./signer/bls/open-either.ts');
    const { applyMemoryPolicy, watchKeyMemory } = await import('./signer/boot/memory-lock.ts');
    const levels = [];
    const at = (level) => () => void levels.push(level);
    const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
    const report = { keys: 0, levels };
    let core;
    try {
      core = await openBlsCore({ log, cores: 1, prefer: '${prefer}', mlock: '${policy}' });
      report.kind = core.kind;
      const watch = watchKeyMemory('${policy}', core, { ...log, warn: (fields, text) => (report.said = text) });
      applyMemoryPolicy('${policy}', core, log);
      const secretKey = Buffer.alloc(32, 1);
      for (; report.keys < ${keys}; report.keys++) core.addKey(secretKey);
      watch.check();
    } catch (error) { report.refusal = error.message; }
    report.memoryLocked = core?.memoryLocked;
    report.unlockedKeys = core?.unlockedKeys();
    if (process.platform === 'linux') {
      report.coreLimit = /^Max core file size +(.*?) +bytes/m.exec(readFileSync('/proc/self/limits', 'utf8'))[1].replace(/ +/, ' ');
      report.ownerOfProcess = statSync('/proc/self/status').uid;
    }
    console.log(JSON.stringify(report));
    await core?.close();`;
  const script = `ulimit -l ${lockKiB} && exec "$0" --input-type=module -e "$1"`;
  const [command, args] = user?.command('sh', ['-c', script, process.execPath, program]) ?? ['false', []];
  const run = spawnSync(command, args, { cwd: PROJECT_ROOT, encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`the child failed: ${run.stderr}`);
  return JSON.parse(run.stdout);
}

describe.skipIf(!withNative)('with the native core', () => {
  it.each(['best_effort', 'required'])('"%s" locks the keys, and no core can be dumped', (policy) => {
    const report = child({ policy, keys: 600 });
    expect(report).toMatchObject({ kind: 'native', memoryLocked: true, keys: 600, coreLimit: '0 0' });
    expect(report.refusal).toBeUndefined();
    // The kernel gives /proc of a process that is not dumpable to root.
    expect(report.ownerOfProcess).toBe(0);
  });

  it('"off" locks nothing and leaves core dumps as they are', () => {
    const report = child({ policy: 'off' });
    expect(report).toMatchObject({ kind: 'native', memoryLocked: false, keys: 1 });
    expect(report.ownerOfProcess).not.toBe(0);
  });

  it('"best_effort" without the right to lock signs with unlocked memory and warns', () => {
    const report = child({ policy: 'best_effort', lockKiB: 0 });
    expect(report).toMatchObject({ kind: 'native', memoryLocked: false, keys: 1 });
    expect(report.levels).toContain('warn');
  });

  it('"best_effort" whose limit is reached by later keys says so from then on', () => {
    expect(child({ policy: 'best_effort', lockKiB: 16, keys: 512 }).memoryLocked).toBe(true);
    expect(child({ policy: 'best_effort', lockKiB: 16, keys: 513 }).memoryLocked).toBe(false);
  });

  it.each([16, 32, 64])('of 3,000 keys under %i KiB those that are not locked are counted, and said', (lockKiB) => {
    const locked = (lockKiB * 1024) / 32;
    const report = child({ policy: 'best_effort', lockKiB, keys: 3000 });
    expect(report).toMatchObject({ keys: 3000, unlockedKeys: 3000 - locked });
    expect(report.said).toMatch(
      new RegExp(`^${3000 - locked} secret keys are in memory that is not locked: .*RLIMIT_MEMLOCK`),
    );
  });

  it('nothing is said while every key is locked, or nobody asked for it', () => {
    expect(child({ policy: 'best_effort', keys: 600 })).toMatchObject({ unlockedKeys: 0, keys: 600 });
    expect(child({ policy: 'best_effort', keys: 600 }).said).toBeUndefined();
    expect(child({ policy: 'off', keys: 600 })).toMatchObject({ unlockedKeys: 600 });
    expect(child({ policy: 'off', keys: 600 }).said).toBeUndefined();
  });

  it('"required" without the right to lock refuses to start', () => {
    const report = child({ policy: 'required', lockKiB: 0 });
    expect(report.refusal).toMatch(/server\.mlock is "required".*RLIMIT_MEMLOCK.*LimitMEMLOCK/);
    expect(report.refusal).not.toContain('make native');
    expect(report.keys).toBe(0);
  });

  it('"required" never puts a key into memory that is not locked: the key after the limit is refused', () => {
    const report = child({ policy: 'required', lockKiB: 16, keys: 1000 });
    expect(report).toMatchObject({ kind: 'native', memoryLocked: true, keys: 512 });
    expect(report.refusal).toMatch(/RLIMIT_MEMLOCK/);
  });
});

describe.skipIf(user === undefined)('with the portable core', () => {
  it('"required" refuses to start and says how to get the addon', () => {
    expect(child({ policy: 'required', prefer: 'portable' }).refusal).toMatch(
      /server\.mlock is "required".*make native/,
    );
  });

  it('"best_effort" starts and warns', () => {
    const report = child({ policy: 'best_effort', prefer: 'portable' });
    expect(report).toMatchObject({ kind: 'portable', memoryLocked: false, keys: 1 });
    expect(report.levels).toContain('warn');
  });
});
