// Opens the native BLS core. One that computes wrongly must not sign: it has to reproduce a known signature first.

import { availableParallelism } from 'node:os';
import type { Log } from '../../common/observe/log.ts';
import { ADDON_PATH, loadAddon, RAISE_MEMLOCK } from '../native/load.ts';
import type { BlsCore } from './bls.ts';
import { NativeBlsCore, type NativeBlsCoreOptions } from './native.ts';

export interface OpenNativeOptions extends NativeBlsCoreOptions {
  readonly log: Log;
  readonly addonPath?: string | undefined;
}

/** @throws Error when the native core is missing or does not work, or `required` memory is refused */
export async function openNativeBlsCore(options: OpenNativeOptions): Promise<BlsCore> {
  const native = await findNativeBlsCore(options);
  if (native === undefined) throw new Error('the native BLS core does not work, and nothing else may sign here');
  return native;
}

/** Undefined when the addon is missing or does not prove itself. @throws Error when `required` memory is refused */
export async function findNativeBlsCore(options: OpenNativeOptions): Promise<BlsCore | undefined> {
  const { log, addonPath = ADDON_PATH } = options;
  try {
    const addon = loadAddon(addonPath);
    if (addon === undefined) {
      log.warn(
        { addon_path: addonPath },
        'the native BLS core is not used: the addon has not been built (make native)',
      );
      return undefined;
    }
    const core = new NativeBlsCore(addon, options);
    await provedOrClosed(core, options.cores);
    log.info({ core: core.kind, memory_locked: core.memoryLocked }, 'signing with the native BLS core');
    return core;
  } catch (error) {
    // The portable core could not do it.
    if (options.mlock === 'required') throw cannotBeLocked(error);
    log.error(
      { addon_path: addonPath, err: error },
      'the native BLS core is not used: the addon is there and does not work',
    );
    return undefined;
  }
}

function cannotBeLocked(cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `server.mlock is "required", and the native BLS core cannot have its memory: ${reason}; ${RAISE_MEMLOCK}`;
  return new Error(message, { cause });
}

/** From the Web3Signer project's acceptance tests (a public test key). */
export const KNOWN_ANSWER = {
  secretKey: '3ee2224386c82ffea477e2adf28a2929f5c349165a4196158c7f3a2ecca40f35',
  publicKey: '989d34725a2bfc3f15105f3f5fc8741f436c25ee1ee4f948e425d6bcb8c56bce6e06c269635b7e985a7ffa639e2409bf',
  root: 'aa2e0c465c1a45d7b6637fcce4ad6ceb71fc12064b548078d619a411f0de8adc',
  signature:
    '876351b7fb6d2e58e48bc3ed71a9532b39a194d778784a33acb018316b4b87fe64eb93259e1008d54a474ec86f03cd5e1435a7461eae9c1890cfdbe63f6881b4ef4db9e18299013eaee4fb194ea79fb0f78066e3c3ff805cd5579c630cebc6bb',
} as const;

/** The native core signs a root in another way from its 16th time on, and seven together in yet another (native). */
const PROVING_SIGNATURES = 20;
const PROVING_GROUP_OF_CORE = 8;

/** @throws Error after closing a core that does not reproduce the known answer */
export async function provedOrClosed(core: BlsCore, cores = availableParallelism()): Promise<void> {
  try {
    const { handle, publicKey } = core.addKey(Buffer.from(KNOWN_ANSWER.secretKey, 'hex'));
    const root = Buffer.from(KNOWN_ANSWER.root, 'hex');
    // alone: with many cores all the others might come while the root is new
    const first = await core.sign(handle, root, 'priority');
    const repeats = Array.from({ length: PROVING_SIGNATURES }, () => core.sign(handle, root, 'priority'));
    const signatures: unknown[] = [first, ...(await Promise.all(repeats))];
    const group = Array.from({ length: PROVING_GROUP_OF_CORE * cores }, () => handle);
    signatures.push(...(await core.signGroup(group, root, 'normal')));
    core.removeKey(handle);
    if (Buffer.from(publicKey).toString('hex') !== KNOWN_ANSWER.publicKey)
      throw new Error('a known public key came out wrong');
    for (const signature of signatures) {
      if (!(signature instanceof Uint8Array)) throw signature;
      if (Buffer.from(signature).toString('hex') !== KNOWN_ANSWER.signature)
        throw new Error('a known signature came out wrong');
    }
  } catch (error) {
    await core.close();
    throw error;
  }
}
