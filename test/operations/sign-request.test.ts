// What the one parser of signing requests takes and refuses in every message, and what it says about the place.

import { describe, expect, it } from 'vitest';
import {
  accepted,
  aggregateAndProof,
  aggregating,
  attestation,
  attesting,
  forkInfo,
  header,
  malformed,
  parse,
  parseText,
  proposing,
  ROOT,
  refusal,
} from '../api/sign-bodies.ts';

const registration = {
  fee_recipient: '0x'.padEnd(42, 'f'),
  gas_limit: '1',
  timestamp: '2',
  pubkey: '0x'.padEnd(98, 'b'),
};

describe('the type', () => {
  it.each(['attestation', 'Attestation', 'aTTESTATION'])('is taken in any case: %s', (type) => {
    expect(accepted({ ...attesting({}), type }).operation).toBe('ATTESTATION');
  });

  it('AGGREGATE_AND_PROOF_V2 is the operation AGGREGATE_AND_PROOF', () => {
    expect(accepted(aggregating(aggregateAndProof)).operation).toBe('AGGREGATE_AND_PROOF');
  });

  it.each([
    'BLOCK',
    'DEPOSIT',
    'FROBNICATE',
    '',
    'constructor',
    '__proto__',
    'toString',
    'ATTESTATION ',
    'attestatıon', // its upper case is ATTESTATION
  ])('that this signer does not know is refused: "%s"', (type) => {
    expect(parse({ ...attesting({}), type })).toEqual(
      refusal('unsupported_operation', 'type: no operation of this signer'),
    );
  });

  it.each([
    [{ fork_info: forkInfo, attestation }, 'type: is missing'],
    [{ ...attesting({}), type: 3 }, 'type: expected a string'],
    [{ ...attesting({}), type: null }, 'type: expected a string'],
    [{ ...attesting({}), type: ['ATTESTATION'] }, 'type: expected a string'],
    [[attesting({})], 'the body is not a JSON object'],
    [null, 'the body is not a JSON object'],
    ['ATTESTATION', 'the body is not a JSON object'],
  ])('is a member of a JSON object and a string (%#)', (body, hint) => {
    expect(parse(body)).toEqual(malformed(hint));
  });
});

describe('uint64', () => {
  it.each([
    ['0', 0n],
    ['18446744073709551615', 2n ** 64n - 1n],
    ['007', 7n],
    [7, 7n],
    [Number.MAX_SAFE_INTEGER, 2n ** 53n - 1n],
  ])('is a decimal string or a JSON number: %s', (index, value) => {
    expect(accepted(attesting({ index })).message).toMatchObject({ index: value });
  });

  it.each([
    '',
    ' 1',
    '1 ',
    '+1',
    '-1',
    '1.0',
    '1e3',
    '0x10',
    '1_000',
    '١',
    '18446744073709551616',
    '99999999999999999999',
    '000000000000000000001',
    -1,
    1.5,
    2 ** 53,
    1e300,
    true,
    null,
    ['1'],
    { value: '1' },
  ])('is never %j', (index) => {
    expect(parse(attesting({ index }))).toEqual(
      malformed('attestation.index: expected a uint64, as a decimal string or an integer'),
    );
  });

  it.each(['1.0', '1e0', '10E-1', '-0', '9007199254740991.4', '1.00000000000000000000001'])(
    'is not a JSON number that only rounds to an integer: %s',
    (number) => {
      const text = JSON.stringify(attesting({ index: 'N' })).replace('"N"', number);
      expect(parseText(text)).toEqual(
        malformed('attestation.index: expected a uint64, as a decimal string or an integer'),
      );
    },
  );

  it('in an ignored member may be any number', () => {
    const text = JSON.stringify({ ...attesting({}), weight: 'N' }).replace('"N"', '-1.5e3');
    expect(parseText(text).kind).toBe('request');
  });
});

describe('a slot or epoch', () => {
  const expected = 'expected a slot or epoch of at most 2^53 - 1, as a decimal string or an integer';

  it('is taken up to 2^53 - 1, as a number', () => {
    const { message } = accepted(attesting({ target: { epoch: '9007199254740991', root: ROOT } }));
    expect(message).toMatchObject({ slot: 32, target: { epoch: 9007199254740991 } });
  });

  it.each(['9007199254740992', '9007199254740993', '18446744073709551615'])(
    'past that is refused, because it would poison the slashing record: %s',
    (epoch) => {
      expect(parse(attesting({ target: { epoch, root: ROOT } }))).toEqual(
        malformed(`attestation.target.epoch: ${expected}`),
      );
      expect(parse(attesting({ slot: epoch }))).toEqual(malformed(`attestation.slot: ${expected}`));
      expect(parse(proposing({ version: 'DENEB', block_header: { ...header, slot: epoch } }))).toEqual(
        malformed(`beacon_block.block_header.slot: ${expected}`),
      );
    },
  );

  it('of the fork is only compared: a fork that never comes has the largest uint64', () => {
    const fork = { ...forkInfo.fork, epoch: '18446744073709551615' };
    const request = accepted({ ...attesting({}), fork_info: { ...forkInfo, fork } });
    expect(request.forkInfo?.epoch).toBe(2n ** 64n - 1n);
  });
});

describe('hex', () => {
  it.each(['0x', '0X', ''])('is taken with the prefix "%s", in any case', (prefix) => {
    const { message } = accepted(attesting({ beacon_block_root: `${prefix}${'aB'.repeat(32)}` }));
    expect(message).toMatchObject({ beacon_block_root: Buffer.alloc(32, 0xab) });
  });

  it.each([
    '0x',
    '',
    `${ROOT}11`,
    ROOT.slice(0, -2),
    ROOT.slice(0, -1),
    `${ROOT.slice(0, -1)}g`,
    ` ${ROOT}`,
    1,
    null,
    [],
  ])('of the wrong length or kind is refused: %j', (beacon_block_root) => {
    expect(parse(attesting({ beacon_block_root }))).toEqual(
      malformed('attestation.beacon_block_root: expected hex of 32 bytes'),
    );
  });
});

describe('fork_info', () => {
  it('is refused when it is missing or incomplete', () => {
    expect(parse({ type: 'ATTESTATION', attestation })).toEqual(malformed('fork_info: expected an object'));
    expect(parse({ ...attesting({}), fork_info: { fork: forkInfo.fork } })).toEqual(
      malformed('fork_info.genesis_validators_root: is missing'),
    );
    expect(parse({ ...attesting({}), fork_info: null })).toEqual(malformed('fork_info: expected an object'));
  });

  it('names its versions in either spelling, and never two different ones', () => {
    const { previous_version, current_version, epoch } = forkInfo.fork;
    const withFork = (fork: object) => ({ ...attesting({}), fork_info: { ...forkInfo, fork } });
    const camel = { previousVersion: previous_version, currentVersion: current_version, epoch };
    expect(accepted(withFork(camel)).forkInfo).toEqual(accepted(attesting({})).forkInfo);
    expect(accepted(withFork({ ...forkInfo.fork, ...camel })).forkInfo).toEqual(accepted(attesting({})).forkInfo);
    expect(parse(withFork({ ...forkInfo.fork, currentVersion: '0x07000000' }))).toEqual(
      malformed('fork_info.fork: current_version is given twice and differs'),
    );
    expect(parse(withFork({ previous_version, epoch }))).toEqual(
      malformed('fork_info.fork: current_version is missing'),
    );
    expect(parse(withFork({ previous_version: '0x', current_version, epoch }))).toEqual(
      malformed('fork_info.fork.previous_version: expected hex of 4 bytes'),
    );
  });

  it('is not needed by VALIDATOR_REGISTRATION alone', () => {
    const bare = { type: 'VALIDATOR_REGISTRATION', validator_registration: registration };
    expect(accepted(bare).forkInfo).toBeUndefined();
    expect(accepted({ ...bare, fork_info: null }).forkInfo).toBeUndefined();
  });

  it('that VALIDATOR_REGISTRATION carries all the same is read, so that the network can be checked', () => {
    const body = { type: 'VALIDATOR_REGISTRATION', validator_registration: registration, fork_info: forkInfo };
    expect(accepted(body).forkInfo?.genesisValidatorsRoot).toEqual(Buffer.alloc(32, 0x11));
    expect(parse({ ...body, fork_info: {} }).kind).toBe('refused');
  });
});

describe('the root that a client sends', () => {
  it.each(['signingRoot', 'signing_root'])('is kept from %s', (name) => {
    expect(accepted({ ...attesting({}), [name]: ROOT }).givenSigningRoot).toEqual(Buffer.alloc(32, 0x11));
  });

  it('may be missing or null', () => {
    expect(accepted(attesting({})).givenSigningRoot).toBeUndefined();
    expect(accepted({ ...attesting({}), signingRoot: null }).givenSigningRoot).toBeUndefined();
  });

  it('is refused when it is malformed, or when its two names differ', () => {
    expect(parse({ ...attesting({}), signingRoot: '0x11' })).toEqual(
      malformed('signingRoot: expected hex of 32 bytes'),
    );
    const two = { signingRoot: ROOT, signing_root: '22'.repeat(32) };
    expect(parse({ ...attesting({}), ...two })).toEqual(malformed('signingRoot and signing_root differ'));
    expect(accepted({ ...attesting({}), signingRoot: ROOT, signing_root: ROOT }).givenSigningRoot).toBeDefined();
  });
});

describe('members', () => {
  it('that are missing are named', () => {
    const { target: _, ...rest } = attestation;
    expect(parse({ type: 'ATTESTATION', fork_info: forkInfo })).toEqual(malformed('attestation: expected an object'));
    expect(parse({ type: 'ATTESTATION', fork_info: forkInfo, attestation: rest })).toEqual(
      malformed('attestation.target: expected an object'),
    );
    expect(parse(attesting({ index: undefined }))).toEqual(malformed('attestation.index: is missing'));
  });

  it('given twice are refused, because another parser may have read the other one', () => {
    const text = JSON.stringify(attesting({})).replace('"slot"', '"slot":"31","slot"');
    expect(parseText(text)).toEqual(malformed('the member "slot" is given twice'));
  });

  it('named __proto__ or constructor are unknown members like any other', () => {
    const extra = '"__proto__":{"slot":"9"},"constructor":{"prototype":{}},';
    const text = JSON.stringify(attesting({})).replaceAll('{"', `{${extra}"`);
    const parsed = parseText(text);
    expect(parsed.kind === 'request' && parsed.request.message).toMatchObject({ slot: 32 });
    expect(({} as Record<string, unknown>)['slot']).toBeUndefined();
    expect(parseText('{"type":"ATTESTATION","__proto__":{"attestation":{},"fork_info":{}}}').kind).toBe('refused');
  });
});
