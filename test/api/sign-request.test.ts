// What the one parser of signing requests takes and refuses, and what it says about the place.

import * as fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { parseSignRequest, SIGN_REQUEST_SCHEMAS, type SignRequest } from '../../enclave/api/sign-request.ts';
import { encodeHex } from '../../formats/hex.ts';
import { signRequestBody } from '../signing/sign-request-arbitraries.ts';
import { vectorJson } from '../support/vectors.ts';

const ROOT = '0x'.padEnd(66, '1');
const SIGNATURE = '0x'.padEnd(194, 'a');
const forkInfo = {
  fork: { previous_version: '0x05000000', current_version: '0x06000000', epoch: '411392' },
  genesis_validators_root: ROOT,
};
const attestation = {
  slot: '32',
  index: '0',
  beacon_block_root: ROOT,
  source: { epoch: '0', root: ROOT },
  target: { epoch: '1', root: ROOT },
};
const header = { slot: '1', proposer_index: '2', parent_root: ROOT, state_root: ROOT, body_root: ROOT };
const aggregateAndProof = {
  aggregator_index: '1',
  aggregate: { aggregation_bits: '0x03', data: attestation, signature: SIGNATURE },
  selection_proof: SIGNATURE,
};
const registration = {
  fee_recipient: '0x'.padEnd(42, 'f'),
  gas_limit: '1',
  timestamp: '2',
  pubkey: '0x'.padEnd(98, 'b'),
};
const contribution = {
  aggregator_index: '1',
  selection_proof: SIGNATURE,
  contribution: {
    slot: '1',
    beacon_block_root: ROOT,
    subcommittee_index: '0',
    aggregation_bits: '0x01',
    signature: SIGNATURE,
  },
};

function parseText(text: string): ReturnType<typeof parseSignRequest> {
  return parseSignRequest(Buffer.from(text));
}

function parse(body: unknown): ReturnType<typeof parseSignRequest> {
  return parseText(JSON.stringify(body));
}

function accepted(body: unknown): SignRequest {
  const parsed = parse(body);
  if (parsed.kind === 'refused') throw new Error(`${parsed.reason}: ${parsed.hint}`);
  return parsed.request;
}

const attesting = (members: object) => ({
  type: 'ATTESTATION',
  fork_info: forkInfo,
  attestation: { ...attestation, ...members },
});
const aggregating = (aggregate: object, type = 'AGGREGATE_AND_PROOF_V2') => ({
  type,
  fork_info: forkInfo,
  aggregate_and_proof: aggregate,
});
const proposing = (block: object) => ({ type: 'BLOCK_V2', fork_info: forkInfo, beacon_block: block });
const withBits = (aggregation_bits: string, committee_bits?: string) =>
  aggregating({
    ...aggregateAndProof,
    aggregate: { ...aggregateAndProof.aggregate, aggregation_bits, committee_bits },
  });
const allBits = (bits: number): string => `0x${'ff'.repeat(bits / 8)}01`;
const wholeBlock = (version: string, body: object) => proposing({ version, block: { ...header, body } });
const refusal = (reason: string, hint: string) => ({ kind: 'refused', reason, hint });
const malformed = (hint: string) => refusal('malformed_body', hint);
const unsupported = (place: string) => refusal('unsupported_fork', `${place}: no fork known here`);

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

describe('aggregates', () => {
  const electra = {
    ...aggregateAndProof,
    aggregate: { ...aggregateAndProof.aggregate, committee_bits: '0x0100000000000000' },
  };

  it.each([
    ['V1 bare', aggregating(aggregateAndProof, 'AGGREGATE_AND_PROOF')],
    ['V1 bare, Electra', aggregating(electra, 'AGGREGATE_AND_PROOF')],
    ['V2, upper case', aggregating({ version: 'ELECTRA', data: electra })],
    ['V2, lower case', aggregating({ version: 'fulu', data: electra })],
    ['V2 bare', aggregating(electra)],
    ['V2, PHASE0', aggregating({ version: 'PHASE0', data: aggregateAndProof })],
    ['V2, GLOAS', aggregating({ version: 'GLOAS', data: electra })],
    ['V1, with a version beside the members', aggregating({ version: 'Gloas', ...electra }, 'AGGREGATE_AND_PROOF')],
  ])('come as %s', (_name, body) => {
    const request = accepted(body);
    expect(request.operation).toBe('AGGREGATE_AND_PROOF');
    expect(request.message).toMatchObject({ aggregator_index: 1n, aggregate: { data: { slot: 32 } } });
  });

  it.each(['HEZE', 'FROBNICATE', 'constructor'])('of the fork %s are refused, in any shape', (version) => {
    expect(parse(aggregating({ version, data: electra }))).toEqual(unsupported('aggregate_and_proof.version'));
    expect(parse(aggregating({ version, ...electra }))).toEqual(unsupported('aggregate_and_proof.version'));
    expect(parse(aggregating({ version, data: { new_member: '1' } }))).toEqual(
      unsupported('aggregate_and_proof.version'),
    );
  });

  it('keep the fork that they state, and may not state two', () => {
    expect(accepted(aggregating({ version: 'gLOAS', data: electra })).message).toMatchObject({ version: 'gloas' });
    expect(accepted(aggregating({ version: 'FULU', data: { version: 'fulu', ...electra } })).message).toMatchObject({
      version: 'fulu',
    });
    expect(parse(aggregating({ version: 'FULU', data: { version: 'GLOAS', ...electra } }))).toEqual(
      malformed('aggregate_and_proof: version is given twice and differs'),
    );
  });

  it('of no fork, or of two shapes at once, are refused', () => {
    expect(parse(aggregating({ data: electra }))).toEqual(malformed('aggregate_and_proof.version: is missing'));
    expect(parse(aggregating({ version: 7, data: electra }))).toEqual(
      malformed('aggregate_and_proof.version: expected the name of a fork'),
    );
    expect(parse(aggregating({ version: 'FULU', data: electra, ...electra }))).toEqual(
      malformed('aggregate_and_proof: carries both data and aggregate'),
    );
  });

  it('that are malformed are told with the place in the shape that was meant', () => {
    const bad = { ...electra, aggregate: { ...electra.aggregate, data: { ...attestation, slot: 'x' } } };
    const problem = 'expected a slot or epoch of at most 2^53 - 1, as a decimal string or an integer';
    expect(parse(aggregating(bad))).toEqual(malformed(`aggregate_and_proof.aggregate.data.slot: ${problem}`));
    expect(parse(aggregating({ version: 'ELECTRA', data: bad }))).toEqual(
      malformed(`aggregate_and_proof.data.aggregate.data.slot: ${problem}`),
    );
    expect(parse({ type: 'AGGREGATE_AND_PROOF', fork_info: forkInfo })).toEqual(
      malformed('aggregate_and_proof: expected an object'),
    );
  });

  it.each([null, '0x0101', '', 1])('with committee_bits of no preset are refused: %j', (committee_bits) => {
    const body = aggregating({ ...electra, aggregate: { ...electra.aggregate, committee_bits } });
    expect(parse(body)).toEqual(
      malformed('aggregate_and_proof.aggregate.committee_bits: expected hex of 1 or 8 bytes'),
    );
  });
});

describe('aggregation bits', () => {
  const COMMITTEES = '0x0100000000000000';

  it.each([
    ['0x01', '', 0],
    ['0x03', '01', 1],
    ['0x80', '00', 7],
    ['0xff', '7f', 7],
    ['0xff01', 'ff', 8],
    ['0x0102', '0100', 9],
  ])('%s are the bits %s, %i of them', (text, bytes, length) => {
    const { message } = accepted(withBits(text));
    const bits = (message as { aggregate: { aggregation_bits: { bytes: Uint8Array; length: number } } }).aggregate;
    expect(encodeHex(bits.aggregation_bits.bytes)).toBe(`0x${bytes}`);
    expect(bits.aggregation_bits.length).toBe(length);
  });

  it.each(['0x', '', '0x00', '0x0100', '0xff00', '0x1', 'zz'])('without a length bit are refused: "%s"', (text) => {
    expect(parse(withBits(text))).toEqual(
      malformed(
        'aggregate_and_proof.aggregate.aggregation_bits: expected hex of an SSZ Bitlist of at most 131072 bits',
      ),
    );
  });

  it('are at most those of a committee before Electra, and of all committees of a slot since', () => {
    expect(parse(withBits(allBits(2048))).kind).toBe('request');
    expect(parse(withBits(`0x${'ff'.repeat(256)}02`))).toEqual(
      malformed('aggregate_and_proof.aggregate.aggregation_bits: expected at most 2048 bits before Electra'),
    );
    expect(parse(withBits(allBits(131072), COMMITTEES)).kind).toBe('request');
    expect(parse(withBits(`0x${'ff'.repeat(16384)}02`, COMMITTEES)).kind).toBe('refused');
  });

  it.each(['0x01', `0x${'01'.repeat(16)}`])('of a contribution are 8 or 128: %s', (aggregation_bits) => {
    const message = { ...contribution, contribution: { ...contribution.contribution, aggregation_bits } };
    const type = 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF';
    expect(accepted({ type, fork_info: forkInfo, contribution_and_proof: message }).operation).toBe(type);
  });

  it.each(['0x', '0x0101', `0x${'01'.repeat(17)}`])(
    'of a contribution are of no other width: %s',
    (aggregation_bits) => {
      const message = { ...contribution, contribution: { ...contribution.contribution, aggregation_bits } };
      const body = {
        type: 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
        fork_info: forkInfo,
        contribution_and_proof: message,
      };
      expect(parse(body)).toEqual(
        malformed('contribution_and_proof.contribution.aggregation_bits: expected hex of 1 or 16 bytes'),
      );
    },
  );
});

describe('blocks', () => {
  it.each(['PHASE0', 'ALTAIR', 'BELLATRIX', 'capella', 'Deneb', 'ELECTRA', 'FULU', 'GLOAS'])(
    'of %s are taken as a header',
    (version) => {
      const { message } = accepted(proposing({ version, block_header: header, block: null }));
      expect(message).toMatchObject({ slot: 1, body: { kind: 'root' } });
    },
  );

  it.each(['HEZE', 'PHASE1', ''])('of the unknown fork "%s" are refused', (version) => {
    const reason = version === '' ? 'malformed_body' : 'unsupported_fork';
    expect(parse(proposing({ version, block_header: header }))).toMatchObject({ kind: 'refused', reason });
  });

  it('that are neither a header nor a block are refused', () => {
    expect(parse(proposing({ version: 'DENEB' }))).toEqual(malformed('beacon_block.block_header: expected an object'));
    expect(parse(proposing({ version: 'PHASE0' }))).toEqual(malformed('beacon_block.block: expected an object'));
    expect(parse(proposing({ version: 'DENEB', block: header }))).toMatchObject({ reason: 'malformed_body' });
    expect(parse(proposing({ block_header: header }))).toEqual(malformed('beacon_block.version: is missing'));
  });

  it('that are both a header and a block are refused: nobody can tell which one is meant', () => {
    expect(parse(proposing({ version: 'PHASE0', block_header: header, block: header }))).toEqual(
      malformed('beacon_block: carries both block and block_header'),
    );
  });

  const emptyBody = {
    randao_reveal: SIGNATURE,
    eth1_data: { deposit_root: ROOT, deposit_count: '0', block_hash: ROOT },
    graffiti: ROOT,
    proposer_slashings: [],
    attester_slashings: [],
    attestations: [],
    deposits: [],
    voluntary_exits: [],
  };
  const exit = { message: { epoch: '18446744073709551615', validator_index: '1' }, signature: SIGNATURE };
  const deposit = {
    proof: Array.from({ length: 33 }, () => ROOT),
    data: { pubkey: `0x${'22'.repeat(48)}`, withdrawal_credentials: ROOT, amount: '1', signature: SIGNATURE },
  };

  it('of PHASE0 and ALTAIR are taken whole, with any uint64 inside', () => {
    const body = { ...emptyBody, voluntary_exits: [exit], deposits: [deposit] };
    expect(accepted(wholeBlock('phase0', body)).message).toMatchObject({ slot: 1, body: { kind: 'PHASE0' } });
    const sync_aggregate = { sync_committee_bits: `0x${'ff'.repeat(64)}`, sync_committee_signature: SIGNATURE };
    expect(accepted(wholeBlock('Altair', { ...body, sync_aggregate })).message).toMatchObject({
      body: { kind: 'ALTAIR' },
    });
    expect(parse(wholeBlock('ALTAIR', body))).toEqual(
      malformed('beacon_block.block.body.sync_aggregate: expected an object'),
    );
  });

  it('with lists longer or shorter than the chain allows are refused', () => {
    const place = 'beacon_block.block.body';
    expect(
      parse(wholeBlock('PHASE0', { ...emptyBody, voluntary_exits: Array.from({ length: 16 }, () => exit) })).kind,
    ).toBe('request');
    expect(
      parse(wholeBlock('PHASE0', { ...emptyBody, voluntary_exits: Array.from({ length: 17 }, () => exit) })),
    ).toEqual(malformed(`${place}.voluntary_exits: expected an array of at most 16 items`));
    expect(parse(wholeBlock('PHASE0', { ...emptyBody, deposits: [{ ...deposit, proof: [ROOT] }] }))).toEqual(
      malformed(`${place}.deposits.0.proof: expected an array of 33 items`),
    );
    expect(parse(wholeBlock('PHASE0', { ...emptyBody, attestations: {} }))).toEqual(
      malformed(`${place}.attestations: expected an array of at most 128 items`),
    );
  });

  it('with a bad item are refused at that item', () => {
    const bad = { ...exit, message: { ...exit.message, epoch: 'x' } };
    expect(parse(wholeBlock('PHASE0', { ...emptyBody, voluntary_exits: [exit, bad, bad] }))).toEqual(
      malformed(
        'beacon_block.block.body.voluntary_exits.1.message.epoch: expected a uint64, as a decimal string or an integer',
      ),
    );
  });
});

describe('any request at all', () => {
  const reasons = ['malformed_body', 'unsupported_operation', 'unsupported_fork'];
  const isAnswered = (parsed: ReturnType<typeof parseSignRequest>): boolean =>
    parsed.kind === 'request' || (reasons.includes(parsed.reason) && parsed.hint.length > 0);

  it('is parsed or refused, never thrown on', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(parseSignRequest(bytes)).toSatisfy(isAnswered);
      }),
    );
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseText(text)).toSatisfy(isAnswered);
      }),
    );
  });

  it('with one value replaced by anything is parsed or refused, never thrown on', () => {
    const spoiled = fc.tuple(signRequestBody, fc.jsonValue(), fc.nat()).map(([body, junk, which]) => {
      const text = JSON.stringify(body);
      const values = [...text.matchAll(/:("[^"]*"|[[{])/g)];
      const start = (values[which % values.length]?.index ?? 0) + 1;
      return text.slice(0, start) + JSON.stringify(junk) + text.slice(endOfValue(text, start));
    });
    fc.assert(
      fc.property(spoiled, (text) => {
        JSON.parse(text);
        expect(parseText(text)).toSatisfy(isAnswered);
      }),
      { numRuns: 500 },
    );
  });

  it('that is refused is told the place, never the value', () => {
    const secret = 'correct-horse-battery-staple';
    const bodies = [
      { ...attesting({}), type: secret },
      attesting({ slot: secret }),
      attesting({ source: secret }),
      aggregating({ version: secret, data: {} }),
      proposing({ version: secret, block_header: header }),
      { ...attesting({}), signingRoot: secret },
    ];
    for (const body of bodies) expect(JSON.stringify(parse(body))).not.toContain(secret);
  });
});

/** Where the value that starts at `start` ends, in a text whose strings have no escapes. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; ; at++) {
    if (text[at] === '"') at = text.indexOf('"', at + 1);
    else if (text[at] === '{' || text[at] === '[') depth += 1;
    else if (text[at] === '}' || text[at] === ']') depth -= 1;
    if (depth === 0) return at + 1;
  }
}

const negative = vectorJson<{ cases: { case: string; body: object | string; web3signer_status: number }[] }>(
  'signing/negative-requests.json',
)?.cases;

/**
 * specification/signing.md#answers: 400 whatever Web3Signer answers; what is decided later than the parser is a request
 * here.
 */
const NEGATIVE_OUTCOMES: Readonly<Record<string, string>> = {
  'unknown identifier (64..96 hex or any string)': 'request',
  'signingRoot present and wrong': 'request',
  'signing_root (snake case alias) present and wrong': 'request',
  'signingRoot absent': 'request',
  'fork_info missing on a type that needs it': 'malformed_body',
  'inner object missing': 'malformed_body',
  'unknown type': 'unsupported_operation',
  'type missing': 'malformed_body',
  'type in lower case': 'request',
  'unknown extra top-level and nested fields': 'request',
  'numbers as JSON integers instead of strings': 'request',
  'hex without 0x': 'request',
  'negative or non-numeric slot': 'malformed_body',
  'body is not JSON': 'malformed_body',
  'same validator, same target, different root (double vote), slashing DB on': 'request',
  'exact repeat of an already signed attestation': 'request',
  'different genesis_validators_root than the DB': 'request',
  'BLOCK_V2 whose beacon_block has neither block nor block_header': 'malformed_body',
};

describe.skipIf(negative === undefined)('the negative cases of Web3Signer', () => {
  test('are all decided here', () => {
    expect(negative?.map((entry) => entry.case)).toEqual(Object.keys(NEGATIVE_OUTCOMES));
  });

  it.each(negative ?? [])('$case', ({ case: name, body }) => {
    const parsed = parseText(typeof body === 'string' ? body : JSON.stringify(body));
    expect(parsed.kind === 'request' ? 'request' : parsed.reason).toBe(NEGATIVE_OUTCOMES[name]);
  });
});

describe('the schemas', () => {
  it.each(Object.entries(SIGN_REQUEST_SCHEMAS))(
    'of %s describes its input for the OpenAPI document',
    (_type, schema) => {
      const described = z.toJSONSchema(schema, { io: 'input' });
      expect(described).toMatchObject({ type: 'object', properties: { type: { type: 'string' } } });
      expect(described.required).toContain('type');
      // No member is left without a description of what it takes.
      expect(JSON.stringify(described)).not.toContain(':{}');
    },
  );
});
