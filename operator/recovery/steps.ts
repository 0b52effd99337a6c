// What recovery takes for each state that a signer can be in. No step goes round a check: records are raised and never
// lowered, and what was lost is restored from a recovery of the table.

import type { Health } from '../../signer/api/health.ts';

export interface RecoveryStep {
  readonly what: string;
  readonly command: string | null;
}

export interface Trouble {
  readonly state:
    | 'sealed'
    | 'stale'
    | 'slashing_down'
    | 'slashing_unopened'
    | 'keys'
    | 'unreachable'
    | 'refused'
    | 'foreign_answer'
    | 'shutting_down';
  readonly means: string;
  readonly steps: readonly RecoveryStep[];
}

const UNNAMED_TABLE = 'STATE_TABLE';
const KEY_OF_LATCH = `--key '{"pk":{"S":"SEAL_OVERRIDE"}}'`;
const RESTART: RecoveryStep = {
  what: 'restart every replica: a sealed process has wiped its keys and opens nothing any more',
  command: 'systemctl restart strongroom',
};

/**
 * Everything that is wrong. A sealed chamber comes first, and alone: while it is sealed nothing else can be put right.
 */
export function troublesOf({ checks }: Health, table: string | undefined): readonly Trouble[] {
  const down = new Map(checks.filter(({ status }) => status !== 'UP').map((check) => [check.id, check]));
  const chamber = down.get('chamber');
  if (chamber?.sealed_at !== undefined) return [sealed(table)];
  const detailOf = (id: (typeof checks)[number]['id']): string => down.get(id)?.detail ?? 'no detail is given';
  return [
    ...(chamber === undefined ? [] : [SHUTTING_DOWN]),
    ...(down.has('state_watcher') ? [stale(table)] : []),
    ...(down.has('anti_slashing') ? [slashing(detailOf('anti_slashing'), down.get('anti_slashing')?.status)] : []),
    ...(down.has('keys') ? [keys(detailOf('keys'))] : []),
  ];
}

/** The operator copies the line into a shell, and the peer that named the accessor may be no signer. */
const ACCESSOR = /^acc_[0-9a-f]{32}$/;

/** What is left to do when the latch is gone. @param accessor whose token sealed the fleet, where it is known */
export function afterDeletion(accessor: string | null | undefined): readonly RecoveryStep[] {
  const known = accessor != null && ACCESSOR.test(accessor) ? accessor : 'ACCESSOR';
  return [
    RESTART,
    { what: 'see that each replica is Unsealed', command: 'strongroom operator status' },
    {
      what: 'if a token sealed it that should not have: revoke that token, by its accessor',
      command: `strongroom operator auth token revoke --accessor ${known}`,
    },
  ];
}

function sealed(table = UNNAMED_TABLE): Trouble {
  return {
    state: 'sealed',
    means: 'somebody sealed the fleet: nothing is signed, by no replica, until the latch is deleted by hand',
    steps: [
      {
        what: 'look at the latch: it says who sealed the fleet, when and why. Keep it, and be sure that it is over',
        command: `aws dynamodb get-item --consistent-read --table-name ${table} ${KEY_OF_LATCH}`,
      },
      {
        what: 'delete it, if it is still the one that you looked at; needs dynamodb:GetItem and DeleteItem on the table',
        command: `strongroom operator recover --table ${table} --yes`,
      },
      ...afterDeletion(undefined),
    ],
  };
}

function stale(table = UNNAMED_TABLE): Trouble {
  return {
    state: 'stale',
    means: 'the replica does not reach its state table: it signs nothing and goes on by itself when it does',
    steps: [
      {
        what: 'see whether the table answers, from the machine and with the role of the signer',
        command: `aws dynamodb describe-table --table-name ${table}`,
      },
      { what: 'see what the signer says of it', command: 'journalctl -u strongroom -o cat | grep chamber' },
      {
        what: 'put network, credentials or role right; no restart is needed. An older copy of the table is refused, too',
        command: null,
      },
    ],
  };
}

function slashing(detail: string, status: string | undefined): Trouble {
  if (status === 'NOT_OPENED') {
    return { state: 'slashing_unopened', means: detail, steps: [RESTART] };
  }
  return {
    state: 'slashing_down',
    means: `${detail}: nothing is signed that needs a record`,
    steps: [
      {
        what: 'see what the log says: unreachable, another store of the fleet, a failed integrity check, or lost records',
        command: 'journalctl -u strongroom -o cat | grep slashing',
      },
      {
        what: 'see whether the store opens; of sqlite stop the signer before',
        command: 'strongroom slashing status -c strongroom.yaml',
      },
      {
        what: 'unreachable: put it right; the signer goes on by itself. Another store: stop the replicas that sign over it',
        command: null,
      },
      {
        what: 'lost records (slashing_rollback), and it does not end by itself: see what raising the store would cost',
        command: 'strongroom slashing jump -c strongroom.yaml',
      },
      {
        what:
          'a failed integrity check: keep the store for an examination, and never delete rows to get rid of it; restore ' +
          'it, then raise it as above',
        command: null,
      },
    ],
  };
}

function keys(detail: string): Trouble {
  return {
    state: 'keys',
    means: `${detail}; what is loaded signs`,
    steps: [
      { what: 'see which, and why', command: 'journalctl -u strongroom -o cat | grep keys:' },
      { what: 'put the files right, and have them read again', command: 'systemctl reload strongroom' },
    ],
  };
}

const SHUTTING_DOWN: Trouble = {
  state: 'shutting_down',
  means: 'the process ends; what it has admitted it finishes',
  steps: [{ what: 'start it again, unless that is meant', command: 'systemctl start strongroom' }],
};

/** Something answers that is no signer: it says nothing of the state that the signers are in. */
export function foreignAnswer(problem: string): Trouble {
  return {
    state: 'foreign_answer',
    means: `what answers is no strongroom that this version knows: ${problem}`,
    steps: [
      {
        what: 'find out what answers at the URL of the profile or --signer-url',
        command: 'strongroom operator doctor',
      },
      {
        what: 'ask a replica by its own address: a proxy answers by itself when no signer is behind it',
        command: 'strongroom operator recover --signer-url https://REPLICA:9443',
      },
      { what: 'a signer of another version: ask it with the program of that version', command: null },
    ],
  };
}

export function refusing(problem: string): Trouble {
  return {
    state: 'refused',
    means: problem,
    steps: [
      { what: 'find out what it refuses', command: 'strongroom operator doctor' },
      { what: 'see what its log says', command: 'journalctl -u strongroom -o cat' },
    ],
  };
}

/** Nothing answers: the steps for a start that fails, and for a fleet that is sealed and stopped. */
export function unreachableTrouble(problem: string, table = UNNAMED_TABLE): Trouble {
  return {
    state: 'unreachable',
    means: problem,
    steps: [
      { what: 'find out where the way ends', command: 'strongroom operator doctor' },
      { what: 'see why the signer does not start', command: 'systemctl status strongroom' },
      { what: 'see everything that would stop a start', command: 'strongroom server --check -c strongroom.yaml' },
      {
        what: 'see whether the fleet is sealed; recover --yes deletes the latch then, too',
        command: `aws dynamodb get-item --consistent-read --table-name ${table} ${KEY_OF_LATCH}`,
      },
      {
        what:
          'the start says that MASTER_KEY is altered or gone: restore the row from a point-in-time recovery of the ' +
          'table; never delete it, it is the only copy of the master key',
        command: null,
      },
    ],
  };
}
