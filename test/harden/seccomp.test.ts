// The filter of system calls, asked from the inside. Every case runs in a process of its own: a filter cannot be taken
// back. The real signer under it is in test/e2e/system-call-filter.test.ts.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addonForTests, PROJECT_ROOT } from '../support/addon.ts';
import { buildSyscallProbe } from '../support/syscall-probe.ts';

const usable = addonForTests() && process.platform === 'linux';
const { EFAULT, EPERM, ENOSYS } = constants.errno;

/** <linux/sched.h>, <sys/socket.h>, <linux/netlink.h> */
const CLONE = { THREAD: 0x10000, NEWNS: 0x20000, NEWUSER: 0x10000000, NEWNET: 0x40000000 };
const SIGCHLD = 17;
const FAMILY = { UNIX: 1, INET: 2, INET6: 10, NETLINK: 16, PACKET: 17, BLUETOOTH: 31, ALG: 38, XDP: 44 };
const NETLINK = { ROUTE: 0, AUDIT: 9, NETFILTER: 12 };
const SOCK = { STREAM: 1, RAW: 3 };

const NOT_REFUSED = new Set(['clone', 'clone3', 'socket', 'socketpair', 'getpid', 'io_uring_enter']);

/** Who may not set the clock may read it: then the filter lets `adjtimex` through, here with a bad address. */
const READS_CLOCK = usable && !maySetClock();

function maySetClock(): boolean {
  const CAP_SYS_TIME = 25n;
  const [, permitted = ''] = /^CapPrm:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return ((BigInt(`0x${permitted}`) >> CAP_SYS_TIME) & 1n) === 1n;
}

const folder = mkdtempSync(join(tmpdir(), 'strongroom-seccomp-'));
let probe = '';
beforeAll(() => {
  if (usable) probe = buildSyscallProbe(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Run JavaScript with `addon`, `probe` and `report` in a child; what it left in `report` comes back. */
function child(program: string): Record<string, unknown> {
  const run = runChild(program);
  if (run.status !== 0) throw new Error(`the child failed (${run.signal}): ${run.stderr}`);
  return JSON.parse(run.stdout);
}

function runChild(program: string) {
  const whole = `
    const { createRequire } = await import('node:module');
    const { loadAddon } = await import('./signer/native/load.ts');
    const { applySystemCallPolicy } = await import('./signer/boot/system-call-filter.ts');
    const probe = createRequire(import.meta.url)(${JSON.stringify(probe)});
    const addon = loadAddon();
    const report = {};
    const log = { debug() {}, info: () => { report.logged = 'info' }, warn: () => { report.logged = 'warn' }, error() {} };
    ${program}
    console.log(JSON.stringify(report));`;
  return spawnSync(process.execPath, ['--input-type=module', '-e', whole], { cwd: PROJECT_ROOT, encoding: 'utf8' });
}

const ASK_ALL =
  'for (const [name, number] of Object.entries(probe.numbers)) if (!leaveOut.has(name)) report[name] = probe.systemCall(number);';

describe.skipIf(!usable)('the filter', () => {
  it('refuses every call of the list', () => {
    const report = child(
      `const leaveOut = new Set(${JSON.stringify([...NOT_REFUSED])}); addon.installSystemCallFilter(); ${ASK_ALL}`,
    );
    expect(Object.keys(report).length).toBeGreaterThanOrEqual(58);
    const passed = Object.entries(report).filter(([, errno]) => errno !== EPERM);
    expect(passed).toEqual(READS_CLOCK ? [['adjtimex', EFAULT]] : []);
  });

  it('is what refuses them: without it most of them fail for another reason', () => {
    const dangerous = ['fork', 'vfork', 'vhangup', ...NOT_REFUSED];
    const report = child(`const leaveOut = new Set(${JSON.stringify(dangerous)}); ${ASK_ALL}`);
    expect(Object.values(report).filter((errno) => errno !== EPERM).length).toBeGreaterThan(10);
  });

  it('lets threads be made, and neither processes nor namespaces', () => {
    const report = child(`
      addon.installSystemCallFilter();
      const { clone, clone3 } = probe.numbers;
      report.process = probe.systemCall(clone, ${SIGCHLD});
      report.namespaces = [${CLONE.NEWNS}, ${CLONE.NEWUSER}, ${CLONE.NEWNET}].map((flag) => probe.systemCall(clone, flag | ${CLONE.THREAD}));
      report.unseen = probe.systemCall(clone3);
      const { Worker } = await import('node:worker_threads');
      const { once } = await import('node:events');
      const worker = new Worker('require("node:worker_threads").parentPort.postMessage("up")', { eval: true, execArgv: [] });
      [report.worker] = await once(worker, 'message');`);
    expect(report).toEqual({ process: EPERM, namespaces: [EPERM, EPERM, EPERM], unseen: ENOSYS, worker: 'up' });
  });

  it('lets sockets of the signer’s families be made, and no others', () => {
    const report = child(`
      addon.installSystemCallFilter();
      const { socket, socketpair } = probe.numbers;
      const make = (family, type, protocol) => probe.systemCall(socket, family, type, protocol);
      report.stream = [${FAMILY.UNIX}, ${FAMILY.INET}].map((family) => make(family, ${SOCK.STREAM}, 0));
      report.inet6 = make(${FAMILY.INET6}, ${SOCK.STREAM}, 0);
      report.routes = make(${FAMILY.NETLINK}, ${SOCK.RAW}, ${NETLINK.ROUTE});
      report.netlink = [${NETLINK.AUDIT}, ${NETLINK.NETFILTER}].map((protocol) => make(${FAMILY.NETLINK}, ${SOCK.RAW}, protocol));
      report.others = [${FAMILY.PACKET}, ${FAMILY.BLUETOOTH}, ${FAMILY.ALG}, ${FAMILY.XDP}].map((family) => make(family, ${SOCK.RAW}, 0));
      report.pair = probe.systemCall(socketpair, ${FAMILY.ALG}, ${SOCK.STREAM}, 0);`);
    expect(report).toMatchObject({ stream: [0, 0], routes: 0, netlink: [EPERM, EPERM] });
    expect(report).toMatchObject({ others: [EPERM, EPERM, EPERM, EPERM], pair: EPERM });
    expect(report['inet6']).not.toBe(EPERM); // a machine without IPv6 says EAFNOSUPPORT
  });

  it('answers calls that nobody has looked at as an older kernel would', () => {
    const report = child(
      'addon.installSystemCallFilter(); report.errnos = [463, 500, 1023].map((number) => probe.systemCall(number));',
    );
    expect(report['errnos']).toEqual([ENOSYS, ENOSYS, ENOSYS]);
  });

  it.runIf(process.arch === 'x64')('does not judge x32 or i386 by x86-64’s numbers', () => {
    const report = child(
      'addon.installSystemCallFilter(); report.x32 = probe.systemCall(probe.numbers.getpid + 0x40000000);',
    );
    expect(report['x32']).toBe(EPERM);
    const i386 = runChild('addon.installSystemCallFilter(); probe.foreignCall();');
    expect(i386.status).toBeNull();
    expect(i386.signal).toMatch(/SIGSYS|SIGSEGV/); // SIGSEGV where the kernel has no i386 at all
  });

  it('binds threads that were there before it, and none of them can gain a privilege', () => {
    const report = child(`
      const { Worker } = await import('node:worker_threads');
      const { once } = await import('node:events');
      const { readdirSync, readFileSync } = await import('node:fs');
      const worker = new Worker(\`
        const { parentPort } = require('node:worker_threads');
        parentPort.on('message', () => parentPort.postMessage(require('node:child_process').spawnSync('true').error?.code));
        parentPort.postMessage('up');\`, { eval: true, execArgv: [] });
      await once(worker, 'message');
      addon.installSystemCallFilter();
      worker.postMessage('spawn');
      // and the worker lives on: a thread that ends now has no status to read
      [report.spawned] = await once(worker, 'message');
      const states = readdirSync('/proc/self/task').map((id) => readFileSync('/proc/self/task/' + id + '/status', 'utf8'));
      report.threads = states.length;
      report.filtered = states.filter((state) => /^Seccomp:\\t2$/m.test(state) && /^NoNewPrivs:\\t1$/m.test(state)).length;
      worker.unref();`);
    expect(report['spawned']).toBe('EPERM');
    expect(report['threads']).toBeGreaterThan(4);
    expect(report['filtered']).toBe(report['threads']);
  });
});

describe.skipIf(!usable)('server.seccomp', () => {
  const SPAWN = `const { spawnSync } = await import('node:child_process'); report.spawned = spawnSync('true').error?.code ?? 'ran';`;

  it('"off" installs nothing and says nothing', () => {
    const report = child(`report.filtered = applySystemCallPolicy('off', log); ${SPAWN}`);
    expect(report).toEqual({ filtered: false, spawned: 'ran' });
  });

  it.each(['best_effort', 'required'])('"%s" filters, and says so', (policy) => {
    const report = child(`report.filtered = applySystemCallPolicy('${policy}', log); ${SPAWN}`);
    expect(report).toEqual({ filtered: true, spawned: 'EPERM', logged: 'info' });
  });

  // The kernel bounds the filters of a process: after enough of them it refuses another one.
  const FULL = 'for (let full = false; !full; ) try { addon.installSystemCallFilter(); } catch { full = true; }';
  const REFUSED = [
    ['there is no addon', '', '() => undefined', /make native/],
    ['the kernel refuses', FULL, 'loadAddon', /could not be installed: .*memory/],
  ] as const;

  it.each(REFUSED)('"required" does not start when %s', (_, before, load, reason) => {
    const report = child(
      `${before} try { applySystemCallPolicy('required', log, ${load}) } catch (error) { report.refusal = error.message }`,
    );
    expect(report['refusal']).toMatch(/^server\.seccomp is "required": /);
    expect(report['refusal']).toMatch(reason);
  });

  it.each(REFUSED)('"best_effort" warns and starts when %s', (_, before, load) => {
    const report = child(`${before} report.filtered = applySystemCallPolicy('best_effort', log, ${load});`);
    expect(report).toEqual({ filtered: false, logged: 'warn' });
  });
});
