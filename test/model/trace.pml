/*
 * Whether a trace of a real store (signer/slashing/traced-store.ts), as far as one key goes, is one that the rules allow.
 * The file of the variable TRACE has the calls, each with what it answered, and the order in which calls began and ended. A call takes effect
 * at some moment in between. Spin looks for moments at which every answer is that of the rules: when it finds them it
 * reports the assertion at the end (accepted); when there are none, it reports nothing (rejected).
 *
 * A call that failed took effect or did not. How far a store prunes is not checked, only what pruning does.
 */
#define VOTES
#define PLACES 200
#include "rules.pml"

c_decl {
static short IS_MARKS, N_EVENTS;
static short CALLS[4000][10], EVENTS[8000][2], ENTRIES[8000][3];

/* Numbers in the order of test/model/conformance.ts. */
static void readTrace(void) {
  FILE *file = fopen(getenv("TRACE"), "r");
  int calls, entries, n, m, isWhole;
  isWhole = file && fscanf(file, "%hd %hd %d %d", &IS_MARKS, &N_EVENTS, &calls, &entries) == 4;
  if (!isWhole || N_EVENTS > 8000 || calls > 4000 || entries > 8000) { fprintf(stderr, "no trace\n"); exit(2); }
  for (n = 0; n < calls; n++) for (m = 0; m < 10; m++) isWhole = isWhole && fscanf(file, "%hd", &CALLS[n][m]) == 1;
  for (n = 0; n < N_EVENTS; n++) for (m = 0; m < 2; m++) isWhole = isWhole && fscanf(file, "%hd", &EVENTS[n][m]) == 1;
  for (n = 0; n < entries; n++) for (m = 0; m < 3; m++) isWhole = isWhole && fscanf(file, "%hd", &ENTRIES[n][m]) == 1;
  if (!isWhole) { fprintf(stderr, "the trace is not whole\n"); exit(2); }
  fclose(file);
}
}

#define CHECK 1
#define END_TENURE 2
#define BEGIN_TENURE 3
#define JUMP 4
#define IMPORT 5
#define PRUNE 6
#define SLOTS 12

Key key, file;
byte floor, floorSource;
short event;             /* how many events happened */
short call[SLOTS];       /* number of the call, and 1; 0: free */
bit isDone[SLOTS];
byte kind, s, t, r, tenure, answer, strategy;
short e, last;
byte j;
bit hasFailed, isGood, isMarks;

inline load() {
  c_code {
    const short *c = CALLS[now.call[now.j] - 1];
    now.kind = c[0]; now.s = c[1]; now.t = c[2]; now.r = c[3]; now.tenure = c[4]; now.answer = c[5]; now.hasFailed = c[6];
    now.strategy = c[9]; now.isMarks = IS_MARKS;
  }
}
inline unload() { kind = 0; s = 0; t = 0; r = 0; tenure = 0; answer = 0; hasFailed = 0; strategy = 0; e = 0; last = 0; j = 0; isGood = 0; forget() }

inline mergeEntries() {
  clear(file);
  c_code { now.e = CALLS[now.call[now.j] - 1][7]; now.last = now.e + CALLS[now.call[now.j] - 1][8]; }
  do
  :: e >= last -> break
  :: else ->
    c_code { now.s = ENTRIES[now.e][0]; now.t = ENTRIES[now.e][1]; now.r = ENTRIES[now.e][2]; }
    if
    :: isMarks ->
      clear(file);
      file.high = t; file.highSource = s; file.root[t] = r; file.least[t] = s; file.most[t] = s;
      mergeMark(key, file)
    :: else ->
      if
      :: file.root[t] == NONE -> file.root[t] = r; file.least[t] = s; file.most[t] = s
      :: else ->
        if
        :: file.root[t] != r || file.least[t] != s || file.most[t] != s -> file.root[t] = NOROOT
        :: else
        fi;
        if
        :: s < file.least[t] -> file.least[t] = s
        :: else
        fi;
        file.most[t] = HIGHER(file.most[t], s)
      fi;
      file.high = HIGHER(file.high, t); file.highSource = HIGHER(file.highSource, s)
    fi;
    e++
  od;
  if
  :: !isMarks ->
    if
    :: strategy == 1 && key.low == 0 && key.high == 0 && file.high > 0 ->
      merge(key, floor, floorSource, file, false);
      key.low = HIGHER(key.low, file.high); key.lowSource = HIGHER(key.lowSource, file.highSource)
    :: else -> merge(key, floor, floorSource, file, strategy == 2)
    fi
  :: else
  fi;
  clear(file)
}

active proctype checker() {
  c_code { readTrace(); };
  do
  :: atomic { c_expr { now.event < N_EVENTS && EVENTS[now.event][1] == 0 } -> /* a call begins */
      d_step {
        do
        :: call[j] == 0 -> break
        :: else -> j++
        od;
        c_code { now.call[now.j] = EVENTS[now.event][0] + 1; };
        event++;
        j = 0
      }
    }
  :: atomic { c_expr { now.event < N_EVENTS && EVENTS[now.event][1] == 1 } -> /* a call that took effect ends */
      d_step {
        do
        :: c_expr { now.call[now.j] == EVENTS[now.event][0] + 1 } -> break
        :: else -> j++
        od;
        load()
      };
      if
      :: isDone[j] || hasFailed -> d_step { call[j] = 0; isDone[j] = 0; event++; unload() }
      :: else -> unload(); goto dead
      fi
    }
  :: atomic { true -> /* a call takes effect */
      if
      :: j = 0
      :: j = 1
      :: j = 2
      :: j = 3
      :: j = 4
      :: j = 5
      :: j = 6
      :: j = 7
      :: j = 8
      :: j = 9
      :: j = 10
      :: j = 11
      fi;
      if
      :: call[j] == 0 || isDone[j] -> j = 0; goto dead
      :: else ->
        d_step {
          load();
          isGood = 1;
          if
          :: kind == CHECK ->
            if
            :: isMarks -> judgeByMarks(key, floor, floorSource, s, t, r, tenure)
            :: else -> judge(key, floor, floorSource, s, t, r, tenure)
            fi;
            isGood = (answer == verdict || hasFailed || answer == ROLLBACK);
            if
            :: isGood && verdict == SAFE && answer != ROLLBACK && isMarks -> recordMark(key, s, t, r)
            :: isGood && verdict == SAFE && answer != ROLLBACK && !isMarks -> record(key, s, t, r)
            :: else
            fi
          :: kind == END_TENURE -> endTenure(key); isGood = (hasFailed || key.tenure == answer)
          :: kind == BEGIN_TENURE ->
            beginTenure(key, tenure);
            /* An answer of 255: the key is not among those that are begun. */
            isGood = (hasFailed || key.tenure == answer || (answer == 255 && key.tenure != BEGUN(tenure)))
          :: kind == JUMP -> floor = HIGHER(floor, t); floorSource = HIGHER(floorSource, s)
          :: kind == IMPORT -> mergeEntries()
          :: kind == PRUNE
          fi;
          isDone[j] = 1
        };
        if
        :: !isGood -> unload(); goto dead
        :: isGood && !(kind == IMPORT || kind == PRUNE) -> d_step { unload() }
        :: isGood && (kind == IMPORT || kind == PRUNE) && !isMarks ->
          hasPruned = 1;
          do
          :: hasPruned -> d_step { prune(key) }
          :: break
          od;
          unload()
        :: isGood && (kind == IMPORT || kind == PRUNE) && isMarks -> d_step { unload() }
        fi
      fi
    }
  :: c_expr { now.event == N_EVENTS } -> assert(false)
  od;
dead:
  false
}
