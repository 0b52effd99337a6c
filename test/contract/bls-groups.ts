// What every BLS core must do with a group, which is the jobs of many keys on one root: run by bls.ts. A group has the
// signatures of its keys in their order, keeps nobody waiting, and is refused whole, or key by key as its jobs would
// be.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { SignerError } from '../../signer/api/errors.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { MAX_QUEUED_JOBS } from '../../signer/bls/queue.ts';
import {
  bytesOf,
  expectedSignature,
  hex,
  jobsHaveStarted,
  keysOf,
  outcome,
  ROOT,
  secretKeyOf,
} from '../support/bls.ts';
import { IS_WHOLE } from '../support/scale.ts';

const LARGE_GROUP = IS_WHOLE ? 300 : 70;
const GROUPS_AT_ONCE = IS_WHOLE ? 20 : 6;
/** More than are under way together. */
const WIPED_KEYS = IS_WHOLE ? 1000 : 300;
/** Takes far longer than one job. */
const LONGEST_GROUP = IS_WHOLE ? 8192 : 2048;

export function blsGroupsContract(open: () => BlsCore): void {
  let core: BlsCore;
  beforeEach(() => {
    core = open();
  });
  afterEach(() => core.close());

  const groupOutcomes = async (group: ReturnType<BlsCore['signGroup']>): Promise<string[]> =>
    (await group).map((signature) => (signature instanceof SignerError ? signature.reason : hex(signature)));

  it.each([1, 15, 16, 17, LARGE_GROUP])(
    'of %i keys has the signatures of blst, in the order of the handles',
    async (size) => {
      const keys = keysOf(core, size).toReversed();
      for (const label of ['one root', 'another root', 'one root']) {
        const root = bytesOf(`${label} of ${size}`);
        const outcomes = await groupOutcomes(
          core.signGroup(
            keys.map(({ handle }) => handle),
            root,
            'normal',
          ),
        );
        expect(outcomes).toEqual(keys.map(({ secretKey }) => expectedSignature(secretKey, root)));
      }
    },
  );

  it('of no keys is empty', async () => {
    expect(await core.signGroup([], ROOT, 'normal')).toEqual([]);
  });

  it('beside others, in either lane, gets its own signatures', async () => {
    const keys = keysOf(core, 60);
    const handles = keys.map(({ handle }) => handle);
    const roots = Array.from({ length: GROUPS_AT_ONCE }, (_, index) => bytesOf(`group ${index}`));
    const groups = roots.map((root, index) => core.signGroup(handles, root, index % 3 === 0 ? 'priority' : 'normal'));
    const alone = keys.map(({ handle }, index) =>
      outcome(core.sign(handle, roots[index % GROUPS_AT_ONCE] as Uint8Array, 'normal')),
    );
    for (const [index, { secretKey }] of keys.entries()) {
      expect(await alone[index]).toBe(expectedSignature(secretKey, roots[index % GROUPS_AT_ONCE]));
    }
    for (const [index, group] of groups.entries()) {
      const expected = keys.map(({ secretKey }) => expectedSignature(secretKey, roots[index]));
      expect(await groupOutcomes(group)).toEqual(expected);
    }
  });

  it('signs with the keys that are there, and says of the others that they are gone', async () => {
    const keys = keysOf(core, 40);
    for (const { handle } of keys.slice(10, 20)) core.removeKey(handle);
    const outcomes = await groupOutcomes(
      core.signGroup(
        keys.map(({ handle }) => handle),
        ROOT,
        'normal',
      ),
    );
    expect(outcomes).toEqual(
      keys.map(({ secretKey }, index) =>
        index >= 10 && index < 20 ? 'signing_unavailable' : expectedSignature(secretKey),
      ),
    );
  });

  it('that is wiped while it waits: what is under way is signed, the rest is refused', async () => {
    const keys = keysOf(core, WIPED_KEYS);
    const group = core.signGroup(
      keys.map(({ handle }) => handle),
      ROOT,
      'normal',
    );
    await jobsHaveStarted();
    const underWay = core.load().running;
    core.wipe();
    const outcomes = await groupOutcomes(group);
    expect(outcomes.slice(0, underWay)).toEqual(
      keys.slice(0, underWay).map(({ secretKey }) => expectedSignature(secretKey)),
    );
    expect(new Set(outcomes.slice(underWay))).toEqual(new Set(['signing_unavailable']));
  });

  it('does not keep a single job waiting that comes after it', async () => {
    const [key, other] = keysOf(core, 2);
    if (key === undefined || other === undefined) throw new Error('unreachable');
    const order: string[] = [];
    const group = core.signGroup(Array(LONGEST_GROUP).fill(key.handle), ROOT, 'normal').then(() => order.push('group'));
    await jobsHaveStarted();
    const alone = core.sign(other.handle, bytesOf('alone'), 'normal').then(() => order.push('alone'));
    await Promise.all([group, alone]);
    expect(order).toEqual(['alone', 'group']);
  });

  it('is not kept waiting for good by single jobs', async () => {
    const [key] = keysOf(core, 1);
    if (key === undefined) throw new Error('unreachable');
    const state = { isDone: false };
    const group = core.signGroup(Array(64).fill(key.handle), ROOT, 'normal').then((signatures) => {
      state.isDone = true;
      return signatures;
    });
    const comeAgain = async (name: string): Promise<void> => {
      for (let count = 0; !state.isDone; count++) await core.sign(key.handle, bytesOf(`${name} ${count}`), 'normal');
    };
    await Promise.all(Array.from({ length: 200 }, (_, index) => comeAgain(`alone ${index}`)));
    expect(await group).toHaveLength(64);
  });

  it('that does not fit the queue is refused whole, and a closed core refuses it', async () => {
    const { handle } = core.addKey(secretKeyOf('a key'));
    const tooMany = core.signGroup(Array(MAX_QUEUED_JOBS + 1).fill(handle), ROOT, 'normal');
    await expect(tooMany).rejects.toMatchObject({ reason: 'overloaded' });
    const waiting = core.signGroup(Array(500).fill(handle), ROOT, 'normal');
    await jobsHaveStarted();
    await core.close();
    expect((await groupOutcomes(waiting)).at(-1)).toBe('signing_unavailable');
    await expect(core.signGroup([handle], ROOT, 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
  });
}
