/*
 * A fleet: two signers, each over one of two stores, bound to one store by the row of the state table
 * (signer/chamber/store-binding.ts). Stores are copied and put back, the row is put back, signers are killed, end in
 * order, start again, stand still for as long as they like between two steps, are suspended with both clocks, and have a
 * clock that is behind.
 *
 * Time is in ticks: a signer may sign less than BOUND ticks after it began its last heartbeat; another takes over no
 * sooner than WAIT ticks after it saw the row change. Slots pass by themselves. Numbers of incarnations count from 1.
 * Not here (security.md): one who writes the row so often that no heartbeat shows.
 */
#include "rules.pml"

#ifndef KEYS
#define KEYS 2
#endif
#ifndef NUMBERS
#define NUMBERS 4 /* incarnations */
#endif
#ifndef ASKS
#define ASKS 2
#endif
#ifndef RENEWALS
#define RENEWALS 1
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef ENDS
#define ENDS 1
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef ROWS_BACK
#define ROWS_BACK 1
#endif
#ifndef LAGS
#define LAGS 1
#endif

#ifndef ROW_AGE
#define ROW_AGE 0 /* a row that is put back was replaced so many ticks ago */
#endif

#define SHELF 2
#define BOUND 1
#define WAIT 2
#ifdef WITHOUT_WAIT
#define WAIT_TO_TAKE_OVER 0
#else
#define WAIT_TO_TAKE_OVER WAIT
#endif
#define OLD 2 /* as long ago as counts */
#define DEAD 2 /* the name of all processes that did not end in order: bit 2 of signers */

typedef Store {
  unsigned id : 2;
  unsigned closed : 2; /* 0: in use; else how long ago the last signer's right began, and 1 */
  byte held;           /* bit n: it holds incarnation n */
  unsigned floor : 2;
  Key key[KEYS]
}
typedef Row {
  unsigned id : 2;
  unsigned binding : 2;
  unsigned number : 3;
  unsigned signers : 3
}

#define BEAT 1
#define JOIN 2
#define BIND 3
#define LEAVE 4
#define WRITTEN 5 /* the row is written; the signer does not know it yet */
typedef Signer {
  bit up;
  bit at;
  bit isBound;
  bit isSuspended;
  bit isStopped;
  unsigned lag : 1;
  unsigned age : 2;      /* since the last successful heartbeat began */
  unsigned latest : 2;   /* the highest binding that it has seen */
  unsigned announced : 3;
  unsigned since : 2;    /* of the announcement */
  bit hasSeen;
  bit isChanged;         /* the row has changed since it saw it */
  unsigned seen : 2;     /* since when it has not changed */
  unsigned write : 3;    /* of the row, under way */
  unsigned began : 2;
  unsigned rests : 2;    /* how long ago that began which the write rests on */
  unsigned root : 2;     /* recorded and not released yet */
  unsigned place : 2;
  bit key;
  bit isAsked            /* it has the right to ask its store, which it has not reached yet */
}
Store st[3];
Row row, oldRow;
byte usedEnds; /* bit n: a signer went on from the end of incarnation n */
Row expected[2], written[2];
Signer s[2];
unsigned now : 2 = 1;
unsigned number : 3 = 1; /* the latest incarnation there is */
byte released[KEYS * ROWS]; /* bit 1, 2: signatures of roots 1, 2 */
unsigned asks : 3 = ASKS; /* a record only ever refuses more: two signatures make a pair */
unsigned renewals : 2 = RENEWALS;
unsigned kills : 2 = KILLS;
unsigned ends : 2 = ENDS;
unsigned copies : 2 = COPIES;
unsigned rowsBack : 2 = ROWS_BACK;
unsigned lags : 1 = LAGS;
bit hasShelf, hasOldRow;
unsigned shelfAge : 2; /* since the row on the shelf was in force last */
byte i, k, t, r, d; /* choices; 0 between two steps */

#define OTHER (1 - i)
#define CLOCK (now - s[i].lag)
#define HOLDS(store, n) (((store.held) >> (n)) & 1)
#define MINE st[s[i].at]
#define ACTS (s[i].up && !s[i].isSuspended)

#include "binding.pml"
#ifdef WITHOUT_USED_ENDS
#define MAY_USE(n) true
#else
#define MAY_USE(n) (((usedEnds >> (n)) & 1) == 0)
#endif
#define IS_KNOWN(k, t) (st[0].key[k].root[t] == 1 || st[1].key[k].root[t] == 1 || st[2].key[k].root[t] == 1 || released[(k) * ROWS + (t)] == 1 || s[0].isAsked || s[1].isAsked)


inline copyStore(aFrom, aTo) {
  aTo.id = aFrom.id; aTo.closed = aFrom.closed; aTo.held = aFrom.held; aTo.floor = aFrom.floor;
  x = 0;
  do
  :: x >= KEYS -> break
  :: else ->
    aTo.key[x].low = aFrom.key[x].low; aTo.key[x].high = aFrom.key[x].high;
    y = 1;
    do
    :: y >= ROWS -> break
    :: else -> aTo.key[x].root[y] = aFrom.key[x].root[y]; y++
    od;
    x++
  od
}

inline latestOf(aStore) { /* in x */
  x = 7;
  do
  :: x == 0 || HOLDS(aStore, x) -> break
  :: else -> x--
  od
}

inline clearStore(aStore) {
  aStore.id = 0; aStore.closed = 0; aStore.held = 0; aStore.floor = 0;
  x = 0;
  do
  :: x >= KEYS -> break
  :: else ->
    aStore.key[x].low = 0; aStore.key[x].high = 0;
    y = 1;
    do
    :: y >= ROWS -> break
    :: else -> aStore.key[x].root[y] = NONE; y++
    od;
    x++
  od
}

inline incarnate(aStore) { number++; aStore.held = aStore.held | (1 << number); aStore.closed = 0 }

inline lose() { s[i].isBound = 0; s[i].age = 0 }

/* While a signer is bound, `expected` is the row as it knows it. */
inline endWrite() {
  s[i].write = 0; s[i].began = 0; s[i].rests = 0; clearRow(written[i]);
  if
  :: !s[i].isBound -> clearRow(expected[i])
  :: else
  fi
}

/* Everyone who looks sees another heartbeat. */
inline beatOf() { s[0].isChanged = s[0].hasSeen; s[1].isChanged = s[1].hasSeen }

/* The name of a process that is no more: nothing takes it out of a row. */
inline buryName(a) {
  if
  :: (a.signers >> i) & 1 -> a.signers = (a.signers & (7 - (1 << i))) | 4
  :: else
  fi
}

inline endProcess() {
  s[i].up = 0; s[i].isBound = 0; s[i].isSuspended = 0; s[i].isStopped = 0; s[i].age = 0; s[i].latest = 0; s[i].announced = 0; s[i].since = 0;
  s[i].hasSeen = 0; s[i].isChanged = 0; s[i].seen = 0; s[i].root = 0; s[i].place = 0; s[i].key = 0; s[i].isAsked = 0;
  endWrite();
  buryName(row); buryName(oldRow); buryName(expected[0]); buryName(expected[1]); buryName(written[0]); buryName(written[1])
}

/* What ended too late proves nothing. */
inline became() {
  if
#ifndef WITHOUT_LAPSE
  :: HAS_LAPSED -> lose()
#endif
  :: else ->
    s[i].isBound = 1;
#ifdef WITHOUT_BEGAN_AT
    s[i].age = 0;
#else
    s[i].age = s[i].began;
#endif
    s[i].announced = 0; s[i].since = 0; s[i].hasSeen = 0; s[i].isChanged = 0; s[i].seen = 0;
    s[i].latest = HIGHER(s[i].latest, expected[i].binding)
  fi
}

inline pass(anAge) {
  if
  :: anAge < OLD -> anAge++
  :: else
  fi
}

inline tickOf(j) {
  if
  :: s[j].isBound ->
#ifdef WITHOUT_WALL_CLOCK
    if
    :: !s[j].isSuspended -> pass(s[j].age)
    :: else
    fi
#else
    pass(s[j].age)
#endif
  :: else
  fi;
  if
  :: s[j].announced > 0 -> pass(s[j].since)
  :: else
  fi;
  if
  :: s[j].hasSeen && !s[j].isSuspended -> pass(s[j].seen)
  :: else
  fi;
  if
  :: s[j].write == JOIN || s[j].write == BIND || s[j].write == WRITTEN -> pass(s[j].began); pass(s[j].rests)
  :: s[j].write == BEAT -> pass(s[j].began)
  :: else
  fi
}

inline tickStore(aStore) {
  if
  :: aStore.closed > 0 && aStore.closed <= OLD -> aStore.closed++
  :: else
  fi
}

active proctype world() {
  d_step {
    /* Signer 0 is bound over store 0; signer 1 does not run yet. */
    st[0].id = 1; st[0].held = 2; st[1].id = 2;
    row.id = 1; row.binding = 1; row.number = 1; row.signers = 1;
    s[1].at = 1;
#ifdef ENDED
    /* Signer 0 has just ended in order; row and store of this end are saved. */
    row.signers = 0; st[0].closed = 1;
    hasOldRow = 1; setRow(oldRow, row);
    hasShelf = 1; copyStore(st[0], st[SHELF]); forget()
#else
    s[0].up = 1; s[0].isBound = 1; s[0].latest = 1; setRow(expected[0], row)
#endif
  }
  do
  :: atomic {
      if
      :: i = 0
      :: i = 1
      fi;
      if
      /* A client asks; the store checks and records. */
      :: ACTS && MAY_SIGN && s[i].root == NONE && asks > 0 ->
        if
        :: k = 0
        :: KEYS > 1 -> k = KEYS - 1
        fi;
        if
        :: t = 1
        :: PLACES > 1 -> t = 2
        :: PLACES > 2 -> t = 3
        fi;
        /* Roots have no names: the second one is another than one that was recorded. */
        if
        :: r = 1
        :: IS_KNOWN(k, t) -> r = 2
        fi;
        d_step {
          asks--;
          if
#ifndef WITHOUT_AHEAD_OF_CLOCK
          :: t > CLOCK -> skip
#endif
          :: else ->
            s[i].root = r; s[i].place = t; s[i].key = k; s[i].isAsked = 1;
            printf("signer %d is asked for key %d, slot %d, root %d\n", i, k, t, r)
          fi
        }
      :: s[i].isAsked ->
        d_step {
          s[i].isAsked = 0;
          judge(MINE.key[s[i].key], MINE.floor, 0, 0, s[i].place, s[i].root, 0);
          printf("store %d answers signer %d: %d\n", s[i].at, i, verdict);
          if
          :: verdict == SAFE -> record(MINE.key[s[i].key], 0, s[i].place, s[i].root)
          :: verdict == REPEAT
          :: else -> s[i].root = NONE; s[i].place = 0; s[i].key = 0
          fi
        }

      /* The signature leaves, when the signer still has the right. */
      :: ACTS && s[i].root != NONE && !s[i].isAsked ->
        d_step {
          if
#ifdef WITHOUT_SECOND_LOOK
          :: true ->
#else
          :: MAY_SIGN ->
#endif
            printf("signer %d RELEASES key %d, slot %d, root %d\n", i, s[i].key, s[i].place, s[i].root);
            x = s[i].key * ROWS + s[i].place; y = s[i].root;
            s[i].root = NONE; s[i].place = 0; s[i].key = 0;
            released[x] = released[x] | y;
            assert(released[x] != 3)
          :: else -> s[i].root = NONE; s[i].place = 0; s[i].key = 0
          fi
        }

      /* A heartbeat: the store is read, and now and then renewed; then the row is written by compare-and-set. */
      :: ACTS && s[i].isBound && s[i].write == 0 && !s[i].isStopped ->
        if
        :: s[i].age > 0 || !IS_SAME_ROW(row, expected[i]) -> d = 0
        :: number < NUMBERS && renewals > 0 -> d = 1
        :: else -> d = 2
        fi;
        if
        :: d == 2 -> skip
        :: else -> d_step {
          printf("signer %d begins a heartbeat (renews its store: %d)\n", i, d);
          if
          :: d == 1 -> incarnate(MINE); renewals--
          :: else
          fi;
          d = 0;
          s[i].write = BEAT; s[i].began = 0;
          setRow(written[i], expected[i]);
          latestOf(MINE);
          written[i].number = x
        }
        fi
      :: ACTS && s[i].write == BEAT ->
        d_step {
          if
          :: IS_SAME_ROW(row, expected[i]) && IS_MINE(row) ->
            s[i].rests = s[i].age;
            setRow(row, written[i]); setRow(expected[i], row); clearRow(written[i]); beatOf();
            s[i].write = WRITTEN;
            printf("the heartbeat of signer %d is written: binding %d, number %d\n", i, row.binding, row.number)
#ifdef WITHOUT_LOSS
          :: else -> s[i].age = s[i].began; endWrite()
#else
          :: else ->
            if
            :: IS_MINE(row) ->
              setRow(expected[i], row); setRow(written[i], row);
              latestOf(MINE);
              written[i].number = x
            :: else ->
              lose(); endWrite();
              printf("signer %d has lost its right\n", i)
            fi
#endif
          fi
        }

      /* A look by a signer that is not bound. */
      :: ACTS && !s[i].isBound && s[i].write == 0 && !s[i].isStopped ->
        d_step {
          s[i].latest = HIGHER(s[i].latest, row.binding);
          if
          :: !s[i].hasSeen || s[i].isChanged -> s[i].hasSeen = 1; s[i].isChanged = 0; s[i].seen = 0
          :: else
          fi;
          latestOf(MINE);
          y = (row.signers == 0 && x == row.number && MINE.closed > 0 -> MINE.closed - 1 : OLD + 1);
#ifdef WITHOUT_CLOSED_AT
          y = (row.signers == 0 && x == row.number && MINE.closed > 0 -> 0 : OLD + 1);
#endif
#ifdef WITHOUT_INCARNATION
          y = (row.signers == 0 -> 0 : OLD + 1);
#endif
          if
          :: !IS_NAMED(row) -> s[i].announced = 0; s[i].since = 0
          :: else
          fi;
          if
#ifndef WITHOUT_CLOCK_CHECK
          :: s[i].lag > 0 -> skip
#endif
          /* The last signer ended in order. */
          :: else ->
            if
            :: IS_NAMED(row) && y < BOUND && number < NUMBERS && MAY_USE(row.number) ->
              usedEnds = usedEnds | (1 << row.number);
              setRow(expected[i], row);
              incarnate(MINE);
              s[i].write = BIND; s[i].began = 0; s[i].rests = y;
              setRow(written[i], row);
              written[i].number = number; written[i].signers = 1 << i;
              printf("signer %d joins store %d after an end in order\n", i, s[i].at)
            :: else ->
              if
              /* No signer was seen alive for so long: the store is raised, and the fleet bound to it. */
              :: MAY_TAKE_OVER && number < NUMBERS && s[i].latest < 3 ->
                setRow(expected[i], row);
#ifndef WITHOUT_JUMP
                MINE.floor = HIGHER(MINE.floor, CLOCK);
#endif
                incarnate(MINE);
                s[i].write = BIND; s[i].began = 0; s[i].rests = 0;
                written[i].id = MINE.id; written[i].binding = s[i].latest + 1; written[i].number = number; written[i].signers = 1 << i;
                printf("signer %d takes over with store %d, raised to slot %d\n", i, s[i].at, MINE.floor)
              :: else ->
                if
                :: !IS_NAMED(row) -> skip
#ifdef WITHOUT_INCARNATION
                :: IS_NAMED(row) ->
                  setRow(expected[i], row); setRow(written[i], row);
                  written[i].signers = row.signers | (1 << i);
                  s[i].write = JOIN; s[i].began = 0; s[i].rests = 0
#else
                :: MAY_ANNOUNCE(row) && number < NUMBERS ->
                  incarnate(MINE);
                  s[i].announced = number; s[i].since = 0;
                  printf("signer %d writes number %d into store %d, for a live signer to confirm\n", i, number, s[i].at)
                :: IS_CONFIRMED(row) ->
                  setRow(expected[i], row); setRow(written[i], row);
                  latestOf(MINE);
                  written[i].number = x; written[i].signers = row.signers | (1 << i);
                  s[i].write = JOIN; s[i].began = 0; s[i].rests = s[i].since;
                  printf("signer %d is confirmed\n", i)
#endif
                :: else
                fi
              fi
            fi
          fi
        }
      :: ACTS && (s[i].write == JOIN || s[i].write == BIND) ->
        d_step {
          if
#ifdef WITHOUT_ROW_COMPARE_AND_SET
          :: true ->
#else
          :: IS_SAME_ROW(row, expected[i]) && (s[i].write == JOIN || !s[i].isChanged) ->
#endif
            setRow(row, written[i]); setRow(expected[i], row); clearRow(written[i]); beatOf();
            s[i].write = WRITTEN;
            printf("signer %d writes the row: store id %d, binding %d, number %d\n", i, row.id, row.binding, row.number)
          :: else -> endWrite()
          fi
        }
      :: ACTS && s[i].write == WRITTEN ->
        d_step {
          became(); endWrite();
          printf("signer %d gets the answer: it is bound: %d\n", i, s[i].isBound)
        }

      /* An end in order: nothing is signed any more; the name is taken out of the row, and the last one closes the store. */
      :: ACTS && s[i].write == 0 && s[i].root == NONE && !s[i].isStopped && ends > 0 ->
        d_step { s[i].isStopped = 1; ends-- ; printf("signer %d ends\n", i) }
      :: ACTS && s[i].isStopped && s[i].write == 0 ->
        d_step {
          if
          :: s[i].isBound && row.binding == expected[i].binding && IS_MINE(row) && s[i].age < WAIT &&
             (number < NUMBERS || row.signers != (1 << i)) ->
            s[i].write = LEAVE;
            setRow(expected[i], row); setRow(written[i], row);
            written[i].signers = row.signers & (7 - (1 << i));
            if
            :: written[i].signers == 0 -> incarnate(MINE); MINE.closed = 1 + s[i].age
            :: else
            fi;
            latestOf(MINE);
            written[i].number = x
          :: else -> endProcess()
          fi
        }
      :: ACTS && s[i].write == LEAVE ->
        d_step {
          if
          :: IS_SAME_ROW(row, expected[i]) ->
            setRow(row, written[i]); beatOf();
            printf("signer %d has left the row: signers %d\n", i, row.signers);
            endProcess()
          :: else -> endProcess()
          fi
        }

      /* The world. */
      :: s[i].up && kills > 0 -> d_step { kills--; endProcess(); printf("signer %d is killed\n", i) }
      :: !s[i].up ->
        if
        :: d = 0
        :: d = 1
        fi;
        d_step { s[i].up = 1; s[i].at = d; d = 0; printf("signer %d starts over store %d\n", i, s[i].at) }
      :: s[i].up && lags > 0 -> d_step { lags--; s[i].lag = 1; printf("the clock of signer %d falls behind\n", i) }
      :: s[i].lag > 0 -> s[i].lag = 0
#ifdef SUSPENSIONS
      :: s[i].up -> d_step { s[i].isSuspended = !s[i].isSuspended; printf("the machine of signer %d: suspended %d\n", i, s[i].isSuspended) }
#endif
      :: i == 0 -> /* time */
        d_step {
          tickOf(0); tickOf(1);
          tickStore(st[0]); tickStore(st[1]); tickStore(st[2]);
          if
          :: hasOldRow && !IS_SAME_ROW(row, oldRow) -> pass(shelfAge)
          :: else
          fi;
          printf("a tick\n")
        }
      :: i == 0 && now < PLACES -> d_step { now++; printf("slot %d\n", now) }
      :: copies > 0 -> /* a copy of store i */
        d_step { copies--; hasShelf = 1; copyStore(st[i], st[SHELF]); printf("a copy of store %d is made\n", i) }
      :: hasShelf && !(s[0].up && s[0].at == i) && !(s[1].up && s[1].at == i) ->
        d_step { hasShelf = 0; copyStore(st[SHELF], st[i]); clearStore(st[SHELF]); printf("the copy is put in the place of store %d\n", i) }
      :: i == 0 && rowsBack > 0 -> d_step { rowsBack--; hasOldRow = 1; setRow(oldRow, row); shelfAge = 0; printf("the row is saved\n") }
      :: i == 0 && hasOldRow && !IS_SAME_ROW(row, oldRow) && shelfAge >= ROW_AGE ->
        d_step { hasOldRow = 0; setRow(row, oldRow); clearRow(oldRow); shelfAge = 0; beatOf(); printf("the saved row is put back\n") }
      :: else
      fi;
      d_step { i = 0; k = 0; t = 0; r = 0; d = 0; forget() }
    }
  od
}
