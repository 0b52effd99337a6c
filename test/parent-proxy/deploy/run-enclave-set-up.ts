// The script run-enclave in a folder of its own, new for every test, with a script that keeps its arguments where
// nitro-cli would stand: that runs on a parent instance only.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
export const DEPLOY = join(ROOT, 'parent-proxy/deploy');
export const SCRIPT = join(DEPLOY, 'run-enclave');

export let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strongroom-deploy-'));
  writeFileSync(join(directory, 'image.eif'), 'an image');
  writeFileSync(join(directory, 'allocator.yaml'), '---\nmemory_mib: 3072\ncpu_count: 4\n');
  standIn('NONE');
});

afterEach(() => rmSync(directory, { recursive: true }));

/** An enclave that runs until the file `ended` is there. */
export function standIn(flags: string): void {
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

export function environment(extra: Record<string, string> = {}) {
  return {
    PATH: `${directory}:${process.env['PATH']}`,
    STRONGROOM_EIF_PATH: join(directory, 'image.eif'),
    STRONGROOM_ALLOCATOR_FILE: join(directory, 'allocator.yaml'),
    STRONGROOM_POLL_SECONDS: '0.05',
    ...extra,
  };
}

export function calls(): string[] {
  const path = join(directory, 'calls');
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
}

export async function start(...argv: string[]) {
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
export function describeAs(script: string): void {
  const [, usual = ''] = /describe-enclaves\) (.*) ;;$/m.exec(readFileSync(join(directory, 'nitro-cli'), 'utf8')) ?? [];
  const text = readFileSync(join(directory, 'nitro-cli'), 'utf8')
    .replace(/describe-enclaves\) .* ;;$/m, `describe-enclaves) cd ${directory}; ${script.replaceAll('$', '$$$$')} ;;`)
    .replace(
      '#!/bin/sh\n',
      () => `#!/bin/sh\nanswer() { ${usual}; }\n[ $1 != describe-enclaves ] || echo >> ${directory}/asked\n`,
    );
  writeFileSync(join(directory, 'nitro-cli'), text);
}

export function linesOf(name: string): number {
  const path = join(directory, name);
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(5);
}

/** Long pauses are noted, and over at once; the one between two questions is itself. */
export function noteSleeps(): void {
  const sleep = `#!/bin/sh\ncase $1 in 0.05) exec /bin/sleep $1 ;; esac\necho $1 >> ${directory}/sleeps\n`;
  writeFileSync(join(directory, 'sleep'), sleep);
  chmodSync(join(directory, 'sleep'), 0o755);
}

export function sleeps(): string[] {
  const path = join(directory, 'sleeps');
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
}
