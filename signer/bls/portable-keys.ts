// The secret keys of the portable BLS core: one shared region of 32 bytes a key, which the workers read and only this
// thread writes. A slot that a job under way reads is neither wiped nor used again before that job ends, so no job ever
// reads half a key or another one. The memory is neither locked nor left out of core dumps: that takes the addon.

import { SignerError } from '../api/errors.ts';
import { type KeyHandle, SECRET_KEY_BYTES } from '../keys/vault.ts';
import { countSecretKeys } from './derivation.ts';

/** Keys one core can hold. The address range is reserved at the start, the memory taken as keys come. */
const MAX_KEYS = 1_048_576;
const GROWTH_KEYS = 1024;

interface Slot {
  /** The generation of the handle that is, or was last, good for this slot. */
  generation: number;
  /** Jobs under way that read it. */
  pins: number;
  live: boolean;
}

interface PortableKeys {
  readonly region: SharedArrayBuffer;
  /** Take a copy of a valid secret. */
  add(secretKey: Uint8Array): KeyHandle;
  /** Copies of many, of which a worker has to say whether they are valid: all of them, or none. */
  addAll(secretKeys: Uint8Array): KeyHandle[];
  /** Unknown and stale handles are ignored. */
  remove(handle: KeyHandle): void;
  wipe(): void;
  /** Keys that are not removed. */
  count(): number;
  /** The slot of a handle, good until unpin; undefined when the handle is stale. */
  pin(handle: KeyHandle): number | undefined;
  unpin(index: number): void;
}

export function createPortableKeys(): PortableKeys {
  const region = new SharedArrayBuffer(0, { maxByteLength: MAX_KEYS * SECRET_KEY_BYTES });
  const bytes = new Uint8Array(region);
  const slots: Slot[] = [];
  const free: number[] = [];
  let live = 0;

  const secretAt = (index: number) => bytes.subarray(index * SECRET_KEY_BYTES, (index + 1) * SECRET_KEY_BYTES);

  const takeSlot = (): [number, Slot] => {
    const index = free.pop() ?? slots.length;
    if (index >= MAX_KEYS)
      throw new SignerError('signing_unavailable', { detail: { why: 'no room for more keys', max_keys: MAX_KEYS } });
    if ((index + 1) * SECRET_KEY_BYTES > region.byteLength) {
      region.grow(Math.min(region.byteLength + GROWTH_KEYS * SECRET_KEY_BYTES, region.maxByteLength));
    }
    slots[index] ??= { generation: 0, pins: 0, live: false };
    return [index, slots[index]];
  };

  const release = (index: number) => {
    secretAt(index).fill(0);
    free.push(index);
  };

  const retire = (index: number, slot: Slot) => {
    slot.live = false;
    live -= 1;
    if (slot.pins === 0) release(index);
  };

  /** Handles are `generation × MAX_KEYS + index`; generations begin at 1, and 2^33 of them fit a number exactly. */
  const find = (handle: KeyHandle): [number, Slot] | undefined => {
    const index = handle % MAX_KEYS;
    const slot = slots[index];
    return slot?.live && slot.generation === Math.floor(handle / MAX_KEYS) ? [index, slot] : undefined;
  };

  const add = (secretKey: Uint8Array): KeyHandle => {
    const [index, slot] = takeSlot();
    secretAt(index).set(secretKey);
    slot.generation += 1;
    slot.live = true;
    live += 1;
    return (slot.generation * MAX_KEYS + index) as KeyHandle;
  };

  const remove = (handle: KeyHandle): void => {
    const found = find(handle);
    if (found !== undefined) retire(...found);
  };

  return {
    region,
    add,
    addAll(secretKeys) {
      const count = countSecretKeys(secretKeys);
      const handles: KeyHandle[] = [];
      try {
        for (let at = 0; at < count; at++) {
          handles.push(add(secretKeys.subarray(at * SECRET_KEY_BYTES, (at + 1) * SECRET_KEY_BYTES)));
        }
        return handles;
      } catch (error) {
        for (const handle of handles) remove(handle);
        throw error;
      }
    },
    remove,
    wipe() {
      for (const [index, slot] of slots.entries()) if (slot.live) retire(index, slot);
    },
    count: () => live,
    pin(handle) {
      const found = find(handle);
      if (found === undefined) return undefined;
      found[1].pins += 1;
      return found[0];
    },
    unpin(index) {
      const slot = slots[index] as Slot;
      slot.pins -= 1;
      if (slot.pins === 0 && !slot.live) release(index);
    },
  };
}
