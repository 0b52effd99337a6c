/*
 * Keys that move: two signers, two stores with a key table each (the second store keeps marks only), requests that
 * stand still between any two of their steps, imports that fail, signers that are killed, looks at the key table, and
 * pruning (signer/keys/management, signer/slashing/history). Each signer has copies of keys of both stores.
 *
 * The operator keeps to the runbook: a key is moved by DELETE, and its file is imported in one place after DELETE has
 * answered. An import that answered an error has imported nothing, so the same file may go elsewhere.
 */
#include "rules.pml"

#ifndef KEYS
#define KEYS 1
#endif
#ifndef REQUESTS
#define REQUESTS 4
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifndef PRUNES
#define PRUNES 1
#endif
#ifndef ASKS
#define ASKS 3
#endif

#define AWAY 2 /* home: the operator has the file */
#define INACTIVE 1
#define ACTIVE 2

typedef Store { Key key[KEYS] }
#define DELETE 1
#define ACTIVATE 2
#define DEACTIVATE 3
#define IMPORT 4
#define LOOK 5
typedef Request {
  unsigned kind : 3;
  unsigned step : 3;
  bit at;
  bit key;
  unsigned before : 4;
  unsigned files : 2;
  bit isHere
}
typedef Signature { unsigned root : 2; unsigned place : 2; unsigned source : 2; bit key; bit at }

Store st[2];
Key file[KEYS];           /* as the operator has it */
Key draft[2];             /* of a DELETE that has not answered */
byte home[KEYS];
byte row[4];     /* at * 2 + key */
byte copy[8];    /* signer * 4 + at * 2 + key: the tenure that it carries, and 1 */
bit isWithheld[8];
Request q[2];
Signature g[2];
byte released[KEYS * ROWS * PLACES]; /* by key, place, source */
unsigned requests : 3 = REQUESTS;
unsigned kills : 2 = KILLS;
unsigned failures : 2 = FAILURES;
unsigned prunes : 2 = PRUNES;
unsigned asks : 3 = ASKS;
byte i, k, t, r, d, w;

#define OF(i, at, key) ((i) * 4 + (at) * 2 + (key))
#define ROW(at, key) ((at) * 2 + (key))
#define KEY st[q[i].at].key[q[i].key]
#define MY_COPY copy[OF(i, q[i].at, q[i].key)]
#define MY_ROW row[ROW(q[i].at, q[i].key)]
#ifdef MARKS
#define HAS_MARKS(at) ((at) == 1)
#else
#define HAS_MARKS(at) false
#endif

inline copyKey(aFrom, aTo) {
  aTo.low = aFrom.low; aTo.high = aFrom.high;
#ifdef VOTES
  aTo.lowSource = aFrom.lowSource; aTo.highSource = aFrom.highSource;
#endif
  x = 1;
  do
  :: x >= ROWS -> break
  :: else ->
    aTo.root[x] = aFrom.root[x];
#ifdef VOTES
    aTo.least[x] = aFrom.least[x]; aTo.most[x] = aFrom.most[x];
#endif
    x++
  od
}

inline endRequest() {
  clear(draft[i]);
  isWithheld[OF(i, q[i].at, q[i].key)] = 0;
  q[i].kind = 0; q[i].step = 0; q[i].at = 0; q[i].key = 0; q[i].before = 0; q[i].files = 0; q[i].isHere = 0
}

inline endSignature() { g[i].root = 0; g[i].place = 0; g[i].source = 0; g[i].key = 0; g[i].at = 0 }

#define RELEASED(k, t, w) released[((k) * ROWS + (t)) * PLACES + (w)]

/* Whether the vote (w, t) is slashable against one that was released. */
inline assertNothingSlashable(aKey_) {
  x = 1;
  do
  :: x >= ROWS -> break
  :: else ->
    y = 0;
    do
    :: y >= PLACES -> break
    :: else ->
      if
      :: RELEASED(aKey_, x, y) != 0 ->
        assert(!(x == g[i].place && (y != g[i].source || (RELEASED(aKey_, x, y) | g[i].root) == 3)));
#ifdef VOTES
        assert(!(y < g[i].source && x > g[i].place));
        assert(!(y > g[i].source && x < g[i].place))
#endif
      :: else
      fi;
      y++
    od;
    x++
  od
}

active proctype world() {
  d_step {
    k = 0;
    do
    :: k >= KEYS -> break
    :: else -> row[ROW(0, k)] = ACTIVE; copy[OF(0, 0, k)] = 1; copy[OF(1, 0, k)] = 1; k++
    od;
    k = 0
  }
  do
  :: atomic {
      if
      :: i = 0
      :: i = 1
      fi;
      if
      :: g[i].root == NONE && asks > 0 -> /* a client asks a signer over one of the stores; it checks and records */
        if
        :: k = 0
        :: KEYS > 1 -> k = KEYS - 1
        fi;
        if
        :: d = 0
        :: d = 1
        fi;
        if
        :: copy[OF(i, d, k)] > 0 && !isWithheld[OF(i, d, k)] ->
          if
          :: t = 1
          :: t = 2
          :: t = 3
          fi;
          if
          :: r = 1
          :: r = 2
          fi;
#ifdef VOTES
          if
          :: w = 0
          :: t > 1 -> w = 1
          :: t > 2 -> w = 2
          fi;
#endif
          d_step {
            if
            :: HAS_MARKS(d) -> judgeByMarks(st[d].key[k], 0, 0, w, t, r, copy[OF(i, d, k)] - 1)
            :: else -> judge(st[d].key[k], 0, 0, w, t, r, copy[OF(i, d, k)] - 1)
            fi;
            if
            :: verdict == SAFE && HAS_MARKS(d) -> recordMark(st[d].key[k], w, t, r)
            :: verdict == SAFE && !HAS_MARKS(d) -> record(st[d].key[k], w, t, r)
            :: else
            fi;
            if
            :: verdict == SAFE || verdict == REPEAT ->
              asks--;
              g[i].root = r; g[i].place = t; g[i].source = w; g[i].key = k; g[i].at = d;
              printf("signer %d, store %d records key %d: source %d, slot %d, root %d\n", i, d, k, w, t, r)
            :: else
            fi
          }
        :: else
        fi
      :: g[i].root != NONE -> /* the signature leaves */
        d_step {
          printf("signer %d RELEASES key %d: source %d, slot %d, root %d\n", i, g[i].key, g[i].source, g[i].place, g[i].root);
          assertNothingSlashable(g[i].key);
          RELEASED(g[i].key, g[i].place, g[i].source) = RELEASED(g[i].key, g[i].place, g[i].source) | g[i].root;
          endSignature()
        }

      /* A request begins. */
      :: q[i].kind == 0 && requests > 0 ->
        if
        :: k = 0
        :: KEYS > 1 -> k = KEYS - 1
        fi;
        if
        :: d = 0
        :: d = 1
        fi;
        if
        :: home[k] == d -> r = DELETE
        :: home[k] == d -> r = ACTIVATE
        :: home[k] == d -> r = DEACTIVATE
        :: home[k] == AWAY && !(q[1 - i].kind == IMPORT && q[1 - i].key == k) -> r = IMPORT
        :: row[ROW(d, k)] == ACTIVE || copy[OF(i, d, k)] > 0 -> r = LOOK
        :: else -> r = 0
        fi;
        if
        :: r > 0 ->
          d_step {
            q[i].kind = r; q[i].at = d; q[i].key = k; q[i].step = 1;
            if
            :: r != LOOK -> requests--
            :: else
            fi;
            printf("signer %d, store %d: request %d for key %d begins (1 DELETE, 2 active, 3 inactive, 4 import, 5 a look at the table)\n", i, d, r, k)
          }
        :: else
        fi

      /* DELETE: stop here; end the tenure; export; look; the row; look once more; the answer. */
      :: q[i].kind == DELETE && q[i].step == 1 && !(g[i].root != NONE && g[i].key == q[i].key && g[i].at == q[i].at) ->
        d_step { q[i].isHere = (MY_COPY > 0 || MY_ROW > 0); MY_COPY = 0; isWithheld[OF(i, q[i].at, q[i].key)] = 1; q[i].step = 2 }
      :: q[i].kind == DELETE && q[i].step == 2 ->
        d_step {
#ifndef WITHOUT_ENDING
          endTenure(KEY);
#endif
          q[i].before = KEY.tenure; q[i].step = 3;
          printf("DELETE ends tenure: %d now\n", KEY.tenure)
        }
      :: q[i].kind == DELETE && q[i].step == 3 ->
        d_step {
          if
          :: HAS_MARKS(q[i].at) -> exportMark(KEY, 0, 0, draft[i])
          :: else -> export(KEY, 0, 0, draft[i])
          fi;
          q[i].step = 4;
          printf("DELETE exports key %d up to slot %d\n", q[i].key, draft[i].high)
        }
      :: q[i].kind == DELETE && (q[i].step == 4 || q[i].step == 6) ->
        d_step {
          if
#ifdef WITHOUT_LAST_LOOK
          :: false ->
#else
          :: KEY.tenure != q[i].before ->
#endif
            endTenure(KEY); q[i].before = KEY.tenure; q[i].files++;
            q[i].step = (q[i].files >= 3 -> 7 : 3);
            printf("the tenure has moved on: ended again\n")
          :: else ->
            if
            :: q[i].step == 4 -> q[i].step = 5
            :: else ->
              printf("DELETE answers: the file is final\n");
              /* An answer that comes late is of a key that the operator has moved on already. */
              if
              :: home[q[i].key] == q[i].at -> home[q[i].key] = AWAY; copyKey(draft[i], file[q[i].key])
              :: else
              fi;
              endRequest()
            fi
          fi
        }
      :: q[i].kind == DELETE && q[i].step == 5 -> d_step { MY_ROW = NONE; q[i].step = 6; printf("DELETE: the row is gone\n") }
      :: q[i].kind == DELETE && q[i].step == 7 -> endRequest()

      /* PATCH active: the tenure is read; the row; then the store. */
      :: q[i].kind == ACTIVATE && q[i].step == 1 -> d_step { q[i].before = KEY.tenure; q[i].step = 2 }
      :: q[i].kind == ACTIVATE && q[i].step == 2 ->
        d_step {
          if
          :: MY_ROW == NONE -> endRequest()
          :: else -> q[i].step = 3
          fi
        }
      :: q[i].kind == ACTIVATE && q[i].step == 3 ->
        d_step {
          if
#ifdef WITHOUT_NOT_FOUND
          :: MY_ROW == NONE -> q[i].step = 4
#else
          :: MY_ROW == NONE -> endRequest()
#endif
          :: else -> MY_ROW = ACTIVE; q[i].step = 4; printf("PATCH: the row is active\n")
          fi
        }
      :: q[i].kind == ACTIVATE && q[i].step == 4 ->
        d_step { beginTenure(KEY, q[i].before); printf("PATCH active: tenure %d\n", KEY.tenure); endRequest() }

      /* PATCH inactive. */
      :: q[i].kind == DEACTIVATE && q[i].step == 1 && !(g[i].root != NONE && g[i].key == q[i].key && g[i].at == q[i].at) ->
        d_step { MY_COPY = 0; isWithheld[OF(i, q[i].at, q[i].key)] = 1; q[i].step = 2 }
      :: q[i].kind == DEACTIVATE && q[i].step == 2 ->
        d_step { endTenure(KEY); q[i].before = KEY.tenure; q[i].step = 3; printf("PATCH inactive ends tenure: %d now\n", KEY.tenure) }
      :: q[i].kind == DEACTIVATE && q[i].step == 3 ->
        d_step {
          if
          :: MY_ROW != NONE -> MY_ROW = INACTIVE
          :: else
          fi;
          q[i].step = 4
        }
      :: q[i].kind == DEACTIVATE && q[i].step == 4 ->
        d_step {
          if
          :: KEY.tenure != q[i].before && MY_ROW != ACTIVE -> endTenure(KEY)
          :: else
          fi;
          endRequest()
        }

      /* An import: the tenure is read; the file is merged; the row; the copy; last of all the tenure begins. */
      :: q[i].kind == IMPORT && q[i].step == 1 ->
        d_step {
          q[i].before = KEY.tenure;
          if
          :: MY_ROW != NONE -> endRequest()
          :: else -> q[i].step = 2
          fi
        }
      :: q[i].kind == IMPORT && q[i].step == 2 ->
        d_step {
#ifndef WITHOUT_FILE
          if
          :: HAS_MARKS(q[i].at) -> mergeMark(KEY, file[q[i].key])
          :: else -> merge(KEY, 0, 0, file[q[i].key], false)
          fi;
#endif
#ifdef WITHOUT_BEGINNING_LAST
          if
          :: IS_ENDED(KEY.tenure) -> KEY.tenure++
          :: else
          fi;
#endif
          q[i].step = 3;
          printf("import: store %d merges the file of key %d\n", q[i].at, q[i].key)
        }
      :: q[i].kind == IMPORT && q[i].step == 3 ->
        d_step { MY_ROW = ACTIVE; MY_COPY = (IS_ENDED(q[i].before) -> BEGUN(q[i].before) : q[i].before) + 1; q[i].step = 4; printf("import: the row is there\n") }
      :: q[i].kind == IMPORT && q[i].step == 3 && failures > 0 -> d_step { failures--; endRequest(); printf("import: an error, nothing was imported\n") }
      :: q[i].kind == IMPORT && q[i].step == 4 ->
        d_step {
          if
          :: !IS_ENDED(q[i].before) -> home[q[i].key] = q[i].at
          :: else ->
            beginTenure(KEY, q[i].before);
            if
            :: KEY.tenure == BEGUN(q[i].before) -> home[q[i].key] = q[i].at
            :: else -> MY_COPY = 0; MY_ROW = NONE; printf("import: another request moved the key: nothing was imported\n")
            fi
          fi;
          printf("import: key %d, store %d, tenure %d\n", q[i].key, q[i].at, KEY.tenure);
          endRequest()
        }
      /* The answer of the beginning is lost: what may have begun is ended, and the row is taken back. */
      :: q[i].kind == IMPORT && q[i].step == 4 && failures > 0 && IS_ENDED(q[i].before) ->
        d_step {
          failures--;
          beginTenure(KEY, q[i].before);
#ifndef WITHOUT_ENDING_AFTER_FAILURE
          endTenure(KEY);
#endif
          MY_COPY = 0; q[i].step = 5;
          printf("import: the answer of the store is lost; tenure %d\n", KEY.tenure)
        }
      :: q[i].kind == IMPORT && q[i].step == 5 -> d_step { MY_ROW = NONE; endRequest(); printf("import: an error, nothing was imported\n") }

      /* A look at the key table: the row, then the tenure that the copy carries. */
      :: q[i].kind == LOOK && q[i].step == 1 ->
        d_step {
          if
          :: MY_ROW == ACTIVE && !isWithheld[OF(i, q[i].at, q[i].key)] -> q[i].step = 2
          :: else -> MY_COPY = 0; endRequest()
          fi
        }
      :: q[i].kind == LOOK && q[i].step == 2 ->
        d_step { MY_COPY = KEY.tenure + 1; printf("signer %d, store %d: its copy of key %d is of tenure %d\n", i, q[i].at, q[i].key, KEY.tenure); endRequest() }

      :: kills > 0 -> /* and started again */
        d_step {
          kills--;
          /* Nobody knows whether the import was made: the key leaves that place by DELETE only. */
          if
          :: q[i].kind == IMPORT && q[i].step >= 2 -> home[q[i].key] = q[i].at
          :: else
          fi;
          endRequest(); endSignature();
          x = 0;
          do
          :: x >= 4 -> break
          :: else -> copy[i * 4 + x] = 0; x++
          od;
          printf("signer %d is killed and started again\n", i)
        }
      :: prunes > 0 ->
        if
        :: d = 0
        :: d = 1
        fi;
        if
        :: HAS_MARKS(d) -> skip
        :: else -> d_step { prunes--; prune(st[d].key[0]); printf("store %d is pruned: key 0 has the mark %d\n", d, st[d].key[0].low) }
        fi
      :: else
      fi;
      d_step { i = 0; k = 0; t = 0; r = 0; d = 0; w = 0; forget() }
    }
  od
}
