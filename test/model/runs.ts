// What `make check-model` runs. `WORLDS` are exhaustive: every order of everything that the world may do, at this size.
// `MUTANTS` take one protection away each (two, where one backs the other) and have to yield a slashable pair.
// `RANDOM` has larger worlds, of which Spin visits what it can in some minutes (bitstate hashing, random order).

export interface ModelRun {
  readonly name: string;
  readonly world: 'fleet' | 'moves' | 'losses' | 'shares';
  readonly defines: readonly string[];
  readonly expects: 'nothing' | 'a pair';
  readonly depth?: number;
  /** Ends after so long: random. */
  readonly minutes?: number;
}

type World = ModelRun['world'];

function sized(sizes: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(sizes).map(([name, size]) => `${name}=${size}`);
}

const NO_FAULTS = { KILLS: 0, ENDS: 0, COPIES: 0, ROWS_BACK: 0, LAGS: 0 };
const NO_MOVES = { KILLS: 0, FAILURES: 0, PRUNES: 0 };

function world(name: string, of: World, sizes: Readonly<Record<string, number>>, ...flags: string[]): ModelRun {
  return { name, world: of, defines: [...sized(sizes), ...flags], expects: 'nothing' };
}

/** Two signers, two stores, one or two keys (KEYS), three slots unless it says otherwise. */
export const WORLDS: readonly ModelRun[] = [
  world('fleet: take-overs, clocks that are behind', 'fleet', {
    ...NO_FAULTS,
    KEYS: 2,
    NUMBERS: 2,
    LAGS: 1,
    RENEWALS: 0,
  }),
  world('fleet: kills', 'fleet', { ...NO_FAULTS, KEYS: 1, NUMBERS: 3, RENEWALS: 0, KILLS: 1 }),
  world('fleet: the row is put back', 'fleet', {
    ...NO_FAULTS,
    KEYS: 1,
    NUMBERS: 3,
    RENEWALS: 0,
    ROWS_BACK: 1,
    ROW_AGE: 2,
  }),
  world(
    'fleet: the row of an end comes back at once, and a copy of the store',
    'fleet',
    { ...NO_FAULTS, KEYS: 1, NUMBERS: 3, RENEWALS: 0 },
    'ENDED',
  ),
  world('moves: four requests', 'moves', { ...NO_MOVES, KEYS: 1, REQUESTS: 4, ASKS: 2 }),
  world('moves: two keys', 'moves', { ...NO_MOVES, KEYS: 2, REQUESTS: 2, ASKS: 2 }),
  world('moves: kills and failures', 'moves', { KEYS: 1, REQUESTS: 3, ASKS: 2, KILLS: 1, FAILURES: 1, PRUNES: 0 }),
  world('moves: votes and pruning', 'moves', { ...NO_MOVES, KEYS: 1, REQUESTS: 2, ASKS: 3, PRUNES: 1 }, 'VOTES'),
  world('moves: to a store of marks', 'moves', { ...NO_MOVES, KEYS: 1, REQUESTS: 3, ASKS: 3 }, 'MARKS'),
  world('losses: failovers that lose commits', 'losses', { KEYS: 2, ASKS: 2, LOSSES: 2, STOPS: 1 }, 'FAILOVER'),
  world('losses: commits lost under a signer', 'losses', { KEYS: 2, ASKS: 3 }, 'UNDER_SIGNER'),
  world('losses: files put back', 'losses', { KEYS: 2, ASKS: 3 }, 'FILES'),
  world('losses: a folder renamed back', 'losses', { KEYS: 1, ASKS: 3 }, 'FOLDERS'),
  world(
    'losses: a database put back under its signers',
    'losses',
    { KEYS: 1, ASKS: 2, LOSSES: 1, STOPS: 1, LAGS: 0, LEADS: 0 },
    'PUT_BACK',
  ),
  world('losses: an enclave and its parent', 'losses', { KEYS: 2, ASKS: 3 }, 'ENCLAVE'),
  world('shares: votes, 3 of 4', 'shares', { PARTICIPANTS: 4, THRESHOLD: 3, FAULTY: 1, ASKS: 6 }, 'VOTES'),
  world('shares: votes, 2 of 3', 'shares', { PARTICIPANTS: 3, THRESHOLD: 2, FAULTY: 0, ASKS: 5 }, 'VOTES'),
  world('shares: blocks, 5 of 7', 'shares', { PARTICIPANTS: 7, THRESHOLD: 5, FAULTY: 2, ASKS: 12, PLACES: 2 }),
];

function without(protection: string | readonly string[], name: string, of: ModelRun): ModelRun {
  const taken = [protection].flat().map((one) => `WITHOUT_${one}`);
  return { ...of, name: `without ${name}`, defines: [...of.defines, ...taken], expects: 'a pair' };
}

const FLEET = { ...NO_FAULTS, KEYS: 1, NUMBERS: 2, RENEWALS: 0 };
const fleet = (sizes: Readonly<Record<string, number>> = {}, ...flags: string[]): ModelRun =>
  world('', 'fleet', { ...FLEET, ...sizes }, ...flags);
const moves = (sizes: Readonly<Record<string, number>> = {}, ...flags: string[]): ModelRun =>
  world('', 'moves', { ...NO_MOVES, KEYS: 1, REQUESTS: 3, ASKS: 2, ...sizes }, ...flags);
const losses = (flag: string, sizes: Readonly<Record<string, number>> = {}): ModelRun =>
  world('', 'losses', { KEYS: 1, ASKS: 3, ...sizes }, flag);

export const MUTANTS: readonly ModelRun[] = [
  without('BINDING', 'the binding of a fleet', fleet()),
  without('JUMP', 'the jump of a take-over', fleet()),
  without('WAIT', 'the wait before a take-over', fleet()),
  without('WALL_CLOCK', 'the wall clock: a suspended machine', fleet({}, 'SUSPENSIONS')),
  without('CLOCK_CHECK', 'the comparison of clocks before a take-over', fleet({ LAGS: 1 })),
  without('AHEAD_OF_CLOCK', 'the refusal of what lies ahead of the clock', fleet()),
  without('LOSS', 'the loss of the right when a heartbeat is refused', fleet()),
  without(['BEGAN_AT', 'LAPSE'], 'the age of a heartbeat whose answer is late', fleet()),
  without('USED_ENDS', 'the note of an end that was used: its row put back at once', fleet({ NUMBERS: 3 }, 'ENDED')),
  without(
    'CLOSED_AT',
    'the age of an end: the row of a former store put back',
    fleet({ NUMBERS: 3, ROW_AGE: 2 }, 'ENDED'),
  ),
  without('INCARNATION', 'incarnations: two copies of one store', fleet({ COPIES: 1, NUMBERS: 1 })),
  without('TENURE', 'the tenure in each check', moves()),
  without('ENDING', 'the end of a tenure by DELETE', moves()),
  without('FILE', 'the file of a move', moves()),
  without('COMPARE_AND_SET', 'compare-and-set on the tenure: a late PATCH', moves({ REQUESTS: 4 })),
  without(['TENURE_OF_COPY', 'NOT_FOUND'], 'the tenure of a loaded copy', moves({ REQUESTS: 4 })),
  without('DOUBLE', 'the rule on double votes', moves({ REQUESTS: 0, ASKS: 3 })),
  without('SURROUND', 'the rule on surrounding votes', moves({ REQUESTS: 0, ASKS: 3 }, 'VOTES')),
  without('PRUNED_MARKS', 'the marks of what was pruned', moves({ REQUESTS: 0, ASKS: 4, PRUNES: 2 })),
  without('MINIMAL', 'the minimal merging of a file', moves({ REQUESTS: 4, ASKS: 4 }, 'MARKS')),
  without('LINEAGE', 'the jump after a failover', losses('FAILOVER')),
  without('MEMORY', 'the memory of a signer', losses('UNDER_SIGNER')),
  without('CLOSED_MARK', 'the mark of a closed file', losses('FILES')),
  without('LOCAL_FLOOR', 'the floor of an enclave', losses('ENCLAVE')),
  without('END_TIME', 'the time of the end of a file', losses('FOLDERS')),
  without('RENEWAL', 'the incarnation that signers renew without a state table', losses('PUT_BACK')),
  without('WITNESS', 'the witness of the clock: one that is behind', losses('FAILOVER', { LEADS: 0 })),
  without('WITNESS', 'the witness of the clock: one that is ahead, an outage', losses('FILES', { LAGS: 0 })),
  without('DURABLE_RECORD', 'a record that is durable before the signature', losses('UNDER_SIGNER')),
  ...[
    { PARTICIPANTS: 4, THRESHOLD: 3, FAULTY: 2 },
    { PARTICIPANTS: 3, THRESHOLD: 2, FAULTY: 1 },
    { PARTICIPANTS: 7, THRESHOLD: 5, FAULTY: 3 },
    { PARTICIPANTS: 4, THRESHOLD: 2, FAULTY: 0 },
  ].map((sizes): ModelRun => {
    const name = `${sizes.THRESHOLD} of ${sizes.PARTICIPANTS} with ${sizes.FAULTY} that are faulty`;
    return { ...world(name, 'shares', { ...sizes, ASKS: 6, PLACES: 2 }), expects: 'a pair' };
  }),
];

export const RANDOM: readonly ModelRun[] = [
  // Too large to be exhaustive in 3.5 GB.
  {
    ...world('fleet: copies of stores, ends in order', 'fleet', {
      ...NO_FAULTS,
      KEYS: 1,
      NUMBERS: 4,
      ENDS: 1,
      COPIES: 1,
    }),
    minutes: 1,
  },
  {
    ...world('fleet: everything at once', 'fleet', {
      KEYS: 2,
      NUMBERS: 6,
      KILLS: 2,
      ENDS: 2,
      COPIES: 2,
      ROWS_BACK: 2,
      ROW_AGE: 2,
      ASKS: 5,
    }),
    minutes: 1,
  },
  {
    ...world(
      'moves: everything at once',
      'moves',
      { KEYS: 2, REQUESTS: 7, ASKS: 6, KILLS: 2, FAILURES: 2, PRUNES: 2 },
      'VOTES',
      'MARKS',
    ),
    minutes: 1,
  },
];
