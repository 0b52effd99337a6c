// `server.mlock` (docs/security.md). Not mlockall: it crashes V8. JavaScript's own heap stays unlocked.

import type { Log } from '../../common/observe/log.ts';
import type { BlsCore } from '../bls/bls.ts';
import { loadAddon, type MemoryPolicy, RAISE_MEMLOCK } from '../native/load.ts';

type SecretKeyMemory = Pick<BlsCore, 'kind' | 'memoryLocked' | 'unlockedKeys'>;

/** Call once, before the first key is loaded. @throws Error under `required` */
export function applyMemoryPolicy(policy: MemoryPolicy, core: SecretKeyMemory, log: Log): void {
  if (policy === 'off') return;
  const missing = [coreDumpsMissing(), lockedMemoryMissing(core)].filter((text) => text !== undefined);
  if (missing.length === 0) {
    log.info({ policy }, 'secret keys will be in locked memory and core dumps are off');
  } else if (policy === 'required') {
    throw new Error(`server.mlock is "required": ${missing.join('; ')}`);
  } else {
    log.warn({ policy, missing }, 'memory is not protected as server.mlock would have it');
  }
}

function coreDumpsMissing(): string | undefined {
  try {
    const addon = loadAddon();
    if (addon === undefined)
      return 'core dumps cannot be turned off without the native addon: build it with "make native"';
    addon.disableCoreDumps();
    return undefined;
  } catch (error) {
    return `core dumps could not be turned off: ${error instanceof Error ? error.message : error}`;
  }
}

function lockedMemoryMissing(core: SecretKeyMemory): string | undefined {
  if (core.memoryLocked) return undefined;
  return core.kind === 'portable'
    ? 'the portable BLS core is in use and keeps secret keys in memory that is not locked: build the native addon with "make native", or see the error logged before on why it is not used'
    : `the system refused to lock the memory of secret keys: ${RAISE_MEMLOCK}`;
}

export type KeyMemoryWatch = ReturnType<typeof watchKeyMemory>;

const SETTLE_MS = 1000;

/** Under `required` the core refuses a key that is not locked; under `best_effort` it takes it, and the log says so. */
export function watchKeyMemory(policy: MemoryPolicy, core: SecretKeyMemory, log: Log) {
  let said = 0;
  let waiting: NodeJS.Timeout | undefined;
  const check = (): void => {
    clearTimeout(waiting);
    waiting = undefined;
    const unlocked = policy === 'off' ? 0 : core.unlockedKeys();
    if (unlocked > said) {
      log.warn(
        { unlocked_keys: unlocked },
        `${unlocked} secret keys are in memory that is not locked: ${remedyOf(core)}`,
      );
    }
    said = unlocked;
  };
  return {
    /** After each load: says how many keys are not locked, when they have become more. */
    check,
    /** After each key: cheap, and says nothing before the keys that come with it are there, too. */
    keyAdded(): void {
      if (policy === 'off' || waiting !== undefined || core.unlockedKeys() <= said) return;
      waiting = setTimeout(check, SETTLE_MS).unref();
    },
    stop: () => clearTimeout(waiting),
  };
}

function remedyOf({ kind }: SecretKeyMemory): string {
  return kind === 'native'
    ? RAISE_MEMLOCK
    : 'the portable BLS core has no other; build the native addon with "make native"';
}
