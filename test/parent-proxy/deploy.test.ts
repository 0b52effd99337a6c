// The files that run an enclave on its parent: what they name exists, the script refuses what it should, and debug mode
// above all. nitro-cli runs on a parent instance only; here a script that keeps its arguments stands where it would.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parentProxySchema } from '../../enclave/api/parent-proxy.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DEPLOY = join(ROOT, 'parent-proxy/deploy');
const SCRIPT = join(DEPLOY, 'run-enclave');

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strongroom-deploy-'));
  writeFileSync(join(directory, 'image.eif'), 'an image');
  writeFileSync(join(directory, 'allocator.yaml'), '---\nmemory_mib: 3072\ncpu_count: 4\n');
  standIn('NONE');
});

afterEach(() => rmSync(directory, { recursive: true }));

/** An enclave that runs until the file `ended` is there. */
function standIn(flags: string): void {
  const enclave = '{"EnclaveID": "i-0-enc1", "EnclaveCID": 16, "State": "RUNNING", "Flags": "FLAGS"}'.replace(
    'FLAGS',
    flags,
  );
  const script = `#!/bin/sh
echo "$@" >> ${directory}/calls
case $1 in
  run-enclave) echo '${enclave}' ;;
  describe-enclaves) if [ -e ${directory}/ended ]; then echo '[]'; else echo '[${enclave}, {"EnclaveID": "i-0-enc2", "State": "RUNNING", "Flags": "DEBUG_MODE"}]'; fi ;;
  terminate-enclave) touch ${directory}/ended ;;
esac
`;
  writeFileSync(join(directory, 'nitro-cli'), script);
  chmodSync(join(directory, 'nitro-cli'), 0o755);
}

function environment(extra: Record<string, string> = {}) {
  return {
    PATH: `${directory}:${process.env['PATH']}`,
    STRONGROOM_EIF_PATH: join(directory, 'image.eif'),
    STRONGROOM_ALLOCATOR_FILE: join(directory, 'allocator.yaml'),
    STRONGROOM_POLL_SECONDS: '0.05',
    ...extra,
  };
}

function has(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}

/** systemd-analyze judges files since systemd 250. */
function judgesOffline(): boolean {
  const { stdout } = spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' });
  return Number(/^systemd (\d+)/.exec(stdout ?? '')?.[1]) >= 250;
}

function calls(): string[] {
  const path = join(directory, 'calls');
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
}

async function start(...argv: string[]) {
  const env = environment({ RUNTIME_DIRECTORY: directory });
  const child = spawn('sh', [SCRIPT, ...argv], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  while (!calls().some((call) => call.startsWith('describe-enclaves')) && child.exitCode === null) await pause(5);
  return { child, exited };
}

/**
 * What stands in for `describe-enclaves`; `answer` is the usual answer, and the file `asked` has a line for each
 * question.
 */
function describeAs(script: string): void {
  const [, usual = ''] = /describe-enclaves\) (.*) ;;$/m.exec(readFileSync(join(directory, 'nitro-cli'), 'utf8')) ?? [];
  const text = readFileSync(join(directory, 'nitro-cli'), 'utf8')
    .replace(/describe-enclaves\) .* ;;$/m, `describe-enclaves) cd ${directory}; ${script.replaceAll('$', '$$$$')} ;;`)
    .replace(
      '#!/bin/sh\n',
      () => `#!/bin/sh\nanswer() { ${usual}; }\n[ $1 != describe-enclaves ] || echo >> ${directory}/asked\n`,
    );
  writeFileSync(join(directory, 'nitro-cli'), text);
}

function linesOf(name: string): number {
  const path = join(directory, name);
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(5);
}

/** Long pauses are noted, and over at once; the one between two questions is itself. */
function noteSleeps(): void {
  const sleep = `#!/bin/sh\ncase $1 in 0.05) exec /bin/sleep $1 ;; esac\necho $1 >> ${directory}/sleeps\n`;
  writeFileSync(join(directory, 'sleep'), sleep);
  chmodSync(join(directory, 'sleep'), 0o755);
}

function sleeps(): string[] {
  const path = join(directory, 'sleeps');
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
}

describe('run-enclave', () => {
  it('runs the image with what the allocator has reserved, not in debug mode, and ends it on SIGTERM', async () => {
    const { child, exited } = await start();
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    expect(calls()[0]).toBe(
      `run-enclave --eif-path ${directory}/image.eif --enclave-cid 16 --cpu-count 4 --memory 3072 --enclave-name strongroom`,
    );
    expect(calls().at(-1)).toBe('terminate-enclave --enclave-id i-0-enc1');
  });

  it('takes its settings from the arguments before the environment', async () => {
    const { child, exited } = await start('--cid', '20', '--cpu-count', '2', '--memory-mib', '1024');
    child.kill('SIGTERM');
    await exited;
    expect(calls()[0]).toContain('--enclave-cid 20 --cpu-count 2 --memory 1024');
  });

  it('ends with a failure when the enclave ends, so that it is started again', async () => {
    const { exited } = await start();
    writeFileSync(join(directory, 'ended'), '');
    expect(await exited).toEqual([1, null]);
  });

  it('ends an enclave that was still being started when SIGTERM came', async () => {
    const slow = readFileSync(join(directory, 'nitro-cli'), 'utf8').replace(
      'run-enclave) ',
      `run-enclave) while [ ! -e ${directory}/told ]; do sleep 0.02; done; `,
    );
    writeFileSync(join(directory, 'nitro-cli'), slow);
    const child = spawn('sh', [SCRIPT], { env: environment(), stdio: 'ignore' });
    const exited = once(child, 'exit');
    while (!calls().some((call) => call.startsWith('run-enclave'))) await pause(5);
    child.kill('SIGTERM');
    writeFileSync(join(directory, 'told'), '');
    expect(await exited).toEqual([0, null]);
    expect(calls().at(-1)).toBe('terminate-enclave --enclave-id i-0-enc1');
  });

  it('leaves no enclave behind when nitro-cli cannot say what runs', async () => {
    const silent = readFileSync(join(directory, 'nitro-cli'), 'utf8').replace(
      'describe-enclaves) ',
      'describe-enclaves) exit 1; ',
    );
    writeFileSync(join(directory, 'nitro-cli'), silent);
    const { exited } = await start();
    expect(await exited).toEqual([1, null]);
    expect(calls().at(-1)).toBe('terminate-enclave --enclave-id i-0-enc1');
  });

  it('goes on when nitro-cli cannot say once or twice, and after an answer counts from one again', async () => {
    describeAs('case $(($(wc -l < asked) % 3)) in 0) answer ;; 1) exit 1 ;; *) echo garbled ;; esac');
    const { child, exited } = await start();
    await until(() => linesOf('asked') > 12);
    expect(calls().filter((call) => call.startsWith('terminate-enclave'))).toEqual([]);
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });

  it('ends an enclave of which nitro-cli cannot say three times in a row whether it runs', async () => {
    describeAs('if [ "$(wc -l < asked)" -lt 5 ]; then answer; else exit 1; fi');
    const { exited } = await start();
    expect(await exited).toEqual([1, null]);
    expect(linesOf('asked')).toBe(7);
    expect(calls().at(-1)).toBe('terminate-enclave --enclave-id i-0-enc1');
  });

  it.each([
    ['another state', 'answer | sed s/RUNNING/TERMINATING/'],
    ['a list without it', "echo '[]'"],
  ])('takes %s for a definite answer at once', async (_, answer) => {
    describeAs(answer);
    const { exited } = await start();
    expect(await exited).toEqual([1, null]);
    expect(linesOf('asked')).toBe(1);
  });

  it('ends with 1 and names the exit code when nitro-cli does not start the enclave', () => {
    const failing = readFileSync(join(directory, 'nitro-cli'), 'utf8').replace(
      'run-enclave) ',
      'run-enclave) exit 39; ',
    );
    writeFileSync(join(directory, 'nitro-cli'), failing);
    const { status, stderr } = spawnSync('sh', [SCRIPT], { env: environment(), encoding: 'utf8' });
    expect(status).toBe(1);
    expect(stderr).toContain('nitro-cli did not start the enclave (its exit code is 39)');
  });

  it('asks every 15 seconds unless it is told otherwise', () => {
    expect(readFileSync(SCRIPT, 'utf8')).toMatch(/pause "\$\{STRONGROOM_POLL_SECONDS:-15\}"$/m);
  });

  it('waits longer after each failed start, five minutes at most', () => {
    noteSleeps();
    describeAs("echo '[]'");
    const env = environment({ RUNTIME_DIRECTORY: directory });
    for (let attempt = 0; attempt < 10; attempt++) expect(spawnSync('sh', [SCRIPT], { env }).status).toBe(1);
    expect(sleeps()).toEqual(['5', '10', '20', '40', '80', '160', '300', '300', '300']);
  });

  it('waits no more after an enclave that ran for ten minutes, or that a signal ended', async () => {
    noteSleeps();
    writeFileSync(join(directory, 'failures'), '6\n');
    writeFileSync(join(directory, 'date'), `#!/bin/sh\ncat ${directory}/now\n`);
    chmodSync(join(directory, 'date'), 0o755);
    writeFileSync(join(directory, 'now'), '1000\n');
    const { exited } = await start();
    expect(sleeps()).toContain('160');
    expect(readFileSync(join(directory, 'failures'), 'utf8')).toBe('7\n');
    writeFileSync(join(directory, 'now'), '1600\n');
    await until(() => !existsSync(join(directory, 'failures')));
    writeFileSync(join(directory, 'ended'), '');
    expect(await exited).toEqual([1, null]);

    rmSync(join(directory, 'ended'));
    rmSync(join(directory, 'calls'));
    writeFileSync(join(directory, 'failures'), '2\n');
    const { child, exited: stopped } = await start();
    child.kill('SIGTERM');
    expect(await stopped).toEqual([0, null]);
    expect(existsSync(join(directory, 'failures'))).toBe(false);
  });

  it('is ended by a signal while it waits, and starts nothing', async () => {
    writeFileSync(join(directory, 'failures'), '7\n');
    const child = spawn('sh', [SCRIPT], {
      env: environment({ RUNTIME_DIRECTORY: directory }),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = once(child, 'exit');
    await once(child.stderr, 'data');
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    expect(calls()).toEqual([]);
  });

  it('runs debug mode only for the flag that says it is unsafe', async () => {
    const { child, exited } = await start('--unsafe-debug');
    child.kill('SIGTERM');
    await exited;
    expect(calls()[0]).toMatch(/ --debug-mode$/);
  });

  it('ends an enclave that runs in debug mode without having been asked to', async () => {
    standIn('DEBUG_MODE');
    const { exited } = await start();
    expect(await exited).toEqual([78, null]);
    expect(calls().at(-1)).toBe('terminate-enclave --enclave-id i-0-enc1');
  });

  it.each([
    ['debug mode by its usual name', ['--debug-mode'], {}, 'debug mode is refused'],
    ['an unknown argument', ['--debug'], {}, 'unknown argument --debug'],
    ['an argument without its value', ['--cid'], {}, '--cid has no value'],
    ['a CID that is taken', ['--cid', '3'], {}, 'the CID must be at least 4'],
    ['a number that is none', ['--memory-mib', '4G'], {}, "the memory in MiB must be a number, and is '4G'"],
    ['no image', [], { STRONGROOM_EIF_PATH: '' }, 'no image'],
    ['an image that is not there', [], { STRONGROOM_EIF_PATH: '/nonexistent.eif' }, 'cannot be read'],
    ['no allocator', [], { STRONGROOM_ALLOCATOR_FILE: '/nonexistent' }, 'cannot be read'],
  ])('refuses %s, and starts nothing', (_, argv, extra, message) => {
    const { status, stderr } = spawnSync('sh', [SCRIPT, ...argv], { env: environment(extra), encoding: 'utf8' });
    expect({ status, calls: calls() }).toEqual({ status: 78, calls: [] });
    expect(stderr).toContain(message);
  });

  it('is a shell script that any sh reads', () => {
    expect(spawnSync('sh', ['-n', SCRIPT]).status).toBe(0);
  });
});

describe('the units', () => {
  const unit = (name: string): string => readFileSync(join(DEPLOY, name), 'utf8');
  const proxy = unit('strongroom-parent-proxy.service');
  const enclave = unit('strongroom-enclave.service');

  // systemd.service(5): RestartPreventExitStatus= is of the main process. A check before it that ends with 78 would be
  // run again each second, for ever.
  it('end for good on a configuration that cannot be used: the main process itself says so', () => {
    const service = readFileSync(join(ROOT, 'release/systemd/strongroom.service'), 'utf8');
    for (const text of [proxy, enclave, service]) {
      expect(text).toMatch(/^RestartPreventExitStatus=78$/m);
      expect(text).not.toMatch(/^Exec(?:StartPre|Condition)=/m);
    }
  });

  it('start programs that exist, and the runbook names every file', () => {
    for (const [, path = ''] of `${proxy}${enclave}`.matchAll(/^Exec\w+=\/opt\/strongroom\/(\S+)/gm)) {
      expect({ path, exists: existsSync(join(ROOT, path)) }).toEqual({ path, exists: true });
    }
    const runbook = unit('README.md');
    for (const name of readdirSync(DEPLOY)) if (name !== 'README.md') expect(runbook).toContain(`\`${name}\``);
  });

  it('stop the parent proxy before the enclave, and give it longer than its grace time', () => {
    expect(proxy).toMatch(/^After=.*strongroom-enclave\.service/m);
    expect(proxy).toMatch(/^PartOf=strongroom-enclave\.service/m);
    const { limits } = parentProxySchema.parse({});
    const stopSeconds = Number(/^TimeoutStopSec=(\d+)/m.exec(proxy)?.[1]);
    expect(stopSeconds).toBeGreaterThan(limits.graceful_shutdown_timeout_seconds + 5);
  });

  it('let the parent proxy open vsock, and as many connections as its limits say', () => {
    expect(proxy).toMatch(/^RestrictAddressFamilies=.*AF_VSOCK/m);
    const { limits } = parentProxySchema.parse({});
    expect(Number(/^LimitNOFILE=(\d+)/m.exec(proxy)?.[1])).toBeGreaterThan(2 * 16 * limits.max_connections_per_port);
    expect(proxy).not.toContain('MemoryDenyWriteExecute=yes'); // no JavaScript without it
  });

  it('try the parent proxy again for ever: without it the enclave cannot be reached', () => {
    expect(proxy).toMatch(/^\[Unit\][^[]*^StartLimitIntervalSec=0$/m);
    expect(proxy).toMatch(/^Restart=always$/m);
  });

  it('try the enclave again for ever, after a pause that grows', () => {
    expect(enclave).toMatch(/^\[Unit\][^[]*^StartLimitIntervalSec=0$/m);
    expect(enclave).not.toContain('StartLimitBurst');
    expect(enclave).toMatch(/^Restart=always$/m);
    expect(enclave).toMatch(/^RuntimeDirectoryPreserve=restart$/m); // where run-enclave counts
  });

  it.runIf(judgesOffline())('are confined: an exposure of 2 at most', () => {
    for (const name of ['strongroom-enclave.service', 'strongroom-parent-proxy.service']) {
      const argv = ['security', '--offline=yes', '--threshold=20', '--no-pager', join(DEPLOY, name)];
      const { status, stdout } = spawnSync('systemd-analyze', argv, { encoding: 'utf8' });
      expect({ name, status, last: stdout.trimEnd().split('\n').at(-1) }).toMatchObject({ status: 0 });
    }
  });

  it.runIf(judgesOffline())(
    'that loads the rules of the metadata service is confined: an exposure of 3 at most',
    () => {
      const path = join(DEPLOY, 'strongroom-metadata.service');
      const argv = ['security', '--offline=yes', '--threshold=30', '--no-pager', path];
      expect(spawnSync('systemd-analyze', argv).status).toBe(0);
    },
  );

  it('leave the enclave its device, vsock, and the folders of nitro-cli', () => {
    expect(enclave).toMatch(/^DeviceAllow=\/dev\/nitro_enclaves rw$/m);
    expect(enclave).not.toMatch(/^PrivateDevices=yes/m);
    expect(enclave).toMatch(/^RestrictAddressFamilies=.*AF_VSOCK/m);
    expect(enclave).toMatch(/^ReadWritePaths=.*nitro_enclaves.*\/var\/log\/nitro_enclaves/m);
  });

  it.runIf(has('logrotate'))('come with a rotation of nitro-cli’s log that logrotate can read', () => {
    // the group is the parent instance's
    const rules = unit('nitro-cli.logrotate').replace('su root ne', 'su root root');
    const file = join(directory, 'rotation');
    writeFileSync(file, rules, { mode: 0o644 });
    const { status, stderr } = spawnSync('logrotate', ['--debug', file], { encoding: 'utf8' });
    expect({ status, errors: stderr.split('\n').filter((line) => line.startsWith('error')) }).toEqual({
      status: 0,
      errors: [],
    });
  });

  it('share the CID with the configuration', () => {
    expect(unit('enclave.env')).toContain(`STRONGROOM_ENCLAVE_CID=${parentProxySchema.parse({}).enclave_cid}\n`);
  });
});
