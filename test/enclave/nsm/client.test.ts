// The NSM client against the emulator, and against devices that answer what no NSM answers: nothing of theirs is
// believed.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type CborValue, decodeCbor, encodeCbor } from '../../../common/formats/cbor.ts';
import { extendedOnce } from '../../../common/formats/register.ts';
import { createNsm } from '../../../enclave/nsm/client.ts';
import { createNsmEmulator, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { type NsmDevice, NsmError } from '../../../signer/tee/nsm.ts';

function answering(answer: CborValue | Buffer): NsmDevice {
  return async () => (Buffer.isBuffer(answer) ? Buffer.from(answer) : encodeCbor(answer));
}

function map(entries: Readonly<Record<string, CborValue>>): CborValue {
  return new Map(Object.entries(entries));
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => new Error('it succeeded'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(NsmError);
  return (error as NsmError).code;
}

describe('the NSM client', () => {
  it('describes the module and its registers', async () => {
    const nsm = createNsm((await createNsmEmulator({ moduleId: 'i-1-enc2' })).exchange);
    const lockedPcrs = Array.from({ length: 16 }, (_, index) => index);
    expect(await nsm.describe()).toEqual({ moduleId: 'i-1-enc2', maxPcrs: 32, lockedPcrs, digest: 'SHA384' });
    expect(await nsm.describePcr(0)).toEqual({ value: testPcr(0), locked: true });
    expect(await nsm.describePcr(16)).toEqual({ value: Buffer.alloc(48), locked: false });
  });

  it('extends a register until it is locked, and carries the device word for why not then', async () => {
    const nsm = createNsm((await createNsmEmulator()).exchange);
    const digest = createHash('sha384').update('configuration').digest();
    expect(await nsm.extendPcr(16, digest)).toEqual(extendedOnce(digest));
    await nsm.lockPcr(16);
    expect(await nsm.describePcr(16)).toEqual({ value: extendedOnce(digest), locked: true });
    expect(await codeOf(nsm.extendPcr(16, digest))).toBe('ReadOnlyIndex');
    expect(await codeOf(nsm.extendPcr(0, digest))).toBe('ReadOnlyIndex');
    expect(await codeOf(nsm.describePcr(32))).toBe('InvalidIndex');
  });

  it('gives fresh random bytes', async () => {
    const nsm = createNsm((await createNsmEmulator()).exchange);
    const [first, second] = [await nsm.random(), await nsm.random()];
    expect(first).toHaveLength(256);
    expect(first.equals(second)).toBe(false);
  });

  it('asks for documents with what was given and null for the rest', async () => {
    const requests: Buffer[] = [];
    const emulator = await createNsmEmulator();
    const nsm = createNsm((request) => {
      requests.push(Buffer.from(request));
      return emulator.exchange(request);
    });
    const document = await nsm.attest({ userData: Buffer.from('bound') });
    expect(document.length).toBeGreaterThan(1000);
    expect(requests.map((request) => decodeCbor(request))).toEqual([
      map({ Attestation: map({ user_data: Buffer.from('bound'), nonce: null, public_key: null }) }),
    ]);
  });

  it('refuses fields over their limits before it asks the device', async () => {
    const asked: Buffer[] = [];
    const nsm = createNsm(async (request) => {
      asked.push(request);
      return encodeCbor('LockPCR');
    });
    expect(await codeOf(nsm.attest({ nonce: Buffer.alloc(1025) }))).toBe('InputTooLarge');
    expect(await codeOf(nsm.extendPcr(16, Buffer.alloc(0x1000)))).toBe('InputTooLarge');
    expect(asked).toEqual([]);
  });

  const described = {
    version_major: 1,
    version_minor: 0,
    version_patch: 0,
    module_id: 'i-1',
    max_pcrs: 32,
    locked_pcrs: [0],
    digest: 'SHA384',
  };

  it.each<[string, CborValue | Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['what is not CBOR', Buffer.from('ff', 'hex')],
    ['more bytes than the driver allows', Buffer.alloc(0x3001)],
    ['bytes after the answer', Buffer.concat([encodeCbor(map({ DescribeNSM: map(described) })), Buffer.from([0])])],
    ['another operation', map({ GetRandom: map({ random: Buffer.alloc(8) }) })],
    ['two answers', map({ DescribeNSM: map(described), GetRandom: map({}) })],
    ['an error beside an answer', map({ Error: 'InvalidIndex', DescribeNSM: map(described) })],
    ['an error that is no name', map({ Error: 'no such "thing"\n' })],
    ['the operation without its fields', 'DescribeNSM'],
    ['a list', [map({ DescribeNSM: map(described) })]],
    ['fields that are no map', map({ DescribeNSM: 7 })],
    ['another major version', map({ DescribeNSM: map({ ...described, version_major: 2 }) })],
    ['a digest that is no text', map({ DescribeNSM: map({ ...described, digest: 384 }) })],
    ['no module id', map({ DescribeNSM: map({ ...described, module_id: '' }) })],
    ['a locked register that does not exist', map({ DescribeNSM: map({ ...described, locked_pcrs: [32] }) })],
    ['locked registers without end', map({ DescribeNSM: map({ ...described, locked_pcrs: Array(33).fill(0) }) })],
  ])('refuses a device that answers with %s', async (_what, answer) => {
    expect(await codeOf(createNsm(answering(answer)).describe())).toBe('InvalidAnswer');
  });

  it('refuses register values, documents and random bytes of the wrong kind', async () => {
    const describePcr = map({ DescribePCR: map({ lock: true, data: Buffer.alloc(32) }) });
    expect(await codeOf(createNsm(answering(describePcr)).describePcr(0))).toBe('InvalidAnswer');
    const unlocked = map({ DescribePCR: map({ lock: 1, data: Buffer.alloc(48) }) });
    expect(await codeOf(createNsm(answering(unlocked)).describePcr(0))).toBe('InvalidAnswer');
    expect(await codeOf(createNsm(answering(map({ GetRandom: map({ random: '' }) }))).random())).toBe('InvalidAnswer');
    const none = map({ Attestation: map({ document: Buffer.alloc(0) }) });
    expect(await codeOf(createNsm(answering(none)).attest({}))).toBe('InvalidAnswer');
  });

  it('ignores fields that a later minor version adds', async () => {
    const later = map({ DescribeNSM: map({ ...described, version_minor: 7, bank: 'new' }) });
    expect((await createNsm(answering(later)).describe()).moduleId).toBe('i-1');
  });

  it('keeps the code of a device that fails', async () => {
    const failing: NsmDevice = () => Promise.reject(Object.assign(new Error('ioctl failed'), { code: 'EIO' }));
    expect(await codeOf(createNsm(failing).describe())).toBe('EIO');
  });

  it('wipes the raw answer: random bytes are in no second place', async () => {
    const raw = encodeCbor(map({ GetRandom: map({ random: Buffer.alloc(32, 7) }) }));
    expect(await createNsm(async () => raw).random()).toEqual(Buffer.alloc(32, 7));
    expect(raw.equals(Buffer.alloc(raw.length))).toBe(true);
  });

  it('tells each call and its outcome', async () => {
    const calls: string[] = [];
    const { exchange } = await createNsmEmulator();
    const nsm = createNsm(exchange, { onCall: (operation, outcome) => calls.push(`${operation} ${outcome}`) });
    await nsm.describe();
    await nsm.lockPcr(0).catch(() => undefined);
    const broken = createNsm(answering('x'), { onCall: (operation, outcome) => calls.push(`${operation} ${outcome}`) });
    await broken.random().catch(() => undefined);
    expect(calls).toEqual(['DescribeNSM ok', 'LockPCR refused', 'GetRandom failed']);
  });
});

describe('the one slow device', () => {
  function held() {
    const waiting: (() => void)[] = [];
    let most = 0;
    const exchange: NsmDevice = () => {
      most = Math.max(most, waiting.length + 1);
      return new Promise((resolve) => waiting.push(() => resolve(encodeCbor('LockPCR'))));
    };
    const release = (): void => waiting.shift()?.();
    return { exchange, release, waiting, most: () => most };
  }

  it('gets one call at a time, in order, also after one that failed', async () => {
    const order: number[] = [];
    let under = 0;
    const nsm = createNsm(async (request) => {
      under += 1;
      expect(under).toBe(1);
      await new Promise(setImmediate);
      under -= 1;
      const asked = decodeCbor(request) as ReadonlyMap<string, ReadonlyMap<string, CborValue>>;
      const index = asked.get('LockPCR')?.get('index') as number;
      order.push(index);
      if (index === 2) throw new Error('once');
      return encodeCbor('LockPCR');
    });
    const results = await Promise.allSettled([1, 2, 3].map((index) => nsm.lockPcr(index)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(order).toEqual([1, 2, 3]);
  });

  it('has a bounded queue: the next call is refused at once, and there is room again when one ends', async () => {
    const device = held();
    const nsm = createNsm(device.exchange, { maxCalls: 2 });
    const both = Promise.all([nsm.lockPcr(1), nsm.lockPcr(2)]);
    expect(await codeOf(nsm.lockPcr(3))).toBe('Busy');
    await expect.poll(() => device.waiting.length).toBe(1);
    device.release();
    await expect.poll(() => device.waiting.length).toBe(1);
    device.release();
    await both;
    expect(device.most()).toBe(1);
    const later = nsm.lockPcr(4);
    await expect.poll(() => device.waiting.length).toBe(1);
    device.release();
    await later;
  });

  it('that hangs fails its caller and those who wait behind it, and is asked nothing meanwhile', async () => {
    const device = held();
    const nsm = createNsm(device.exchange, { timeoutMs: 1 });
    const codes = await Promise.all([codeOf(nsm.lockPcr(1)), codeOf(nsm.lockPcr(2))]);
    expect(codes).toEqual(['Timeout', 'Timeout']);
    expect(device.waiting).toHaveLength(1);
    device.release();
    await new Promise(setImmediate);
    expect(device.waiting).toHaveLength(0); // the second was given up before its turn
  });
});
