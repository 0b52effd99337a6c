// The script that runs an enclave on its parent: what it starts and ends, when it asks and waits, and that it refuses
// what it should, debug mode above all.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  calls,
  describeAs,
  directory,
  environment,
  linesOf,
  noteSleeps,
  SCRIPT,
  sleeps,
  standIn,
  start,
  until,
} from './run-enclave-set-up.ts';

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
