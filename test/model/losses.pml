/*
 * Stores that lose records: two signers over one database that fails over to a standby which lags (FAILOVER), or of
 * which an earlier state is put back under them (PUT_BACK), one over a store that loses what it recorded in this life
 * (UNDER_SIGNER), one over a file that is put back while it is stopped (FILES), or whose folder is renamed back with its
 * mark (FOLDERS), and an enclave whose parent puts an older table back around a restart (ENCLAVE). Signers are killed,
 * end in order and start again, and clocks are behind and ahead at a jump.
 *
 * A signer refuses what lies ahead of its clock. A clock that is ahead is ahead at a jump alone: whoever signs by it
 * and loses the records in turn is what nothing covers (docs/security.md).
 */
#if defined(FAILOVER) || defined(PUT_BACK)
#define IS_SHARED
#endif
#ifdef FOLDERS
#define FILES
#endif
#include "rules.pml"

#ifndef KEYS
#define KEYS 2
#endif
#ifndef ASKS
#define ASKS 3
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef LAGS
#define LAGS 1
#endif
#ifndef LEADS
#define LEADS 1
#endif
#ifndef STOPS
#define STOPS 2
#endif

typedef Store {
  unsigned floor : 2;
  unsigned era : 2;   /* of the database server, as the record of the store says */
  unsigned end : 3;   /* the number of the last end in order; 0 while it is in use */
  unsigned endAt : 2; /* when that was */
  unsigned renewed : 2; /* its incarnation: later states have higher ones */
  Key key[KEYS]
}
typedef Signer {
  bit up;
  bit isAsked;
  bit lag;
  unsigned seen : 2;     /* the incarnation that it saw last */
  bit isReleased;        /* WITHOUT_DURABLE_RECORD: the signature is out, the record is not */
  unsigned floor : 2;    /* of its start */
  byte known[KEYS];      /* the highest slots that it recorded */
  unsigned root : 2;
  unsigned place : 2;
  bit key
}

#define SHELF 1
Store st[2];
unsigned era : 2;         /* which server the name leads to */
byte closedMark;     /* beside each file: the number of its end in order */
byte shelfMark;      /* that of the folder that is renamed back */
unsigned number : 3;
Signer s[2];
byte released[KEYS * ROWS];
unsigned now : 2 = 1;
unsigned asks : 3 = ASKS;
unsigned losses : 2 = LOSSES;
unsigned stops : 2 = STOPS;
bit lags = LAGS;
bit leads = LEADS;
bit lead;            /* of the jump that is made now */
bit hasShelf;
byte i, k, t, r, d;

#define MINE st[0]
#define CLOCK (now - s[i].lag)

inline copyStore(aFrom, aTo) {
  aTo.floor = aFrom.floor; aTo.era = aFrom.era; aTo.end = aFrom.end;
  aTo.endAt = aFrom.endAt; aTo.renewed = aFrom.renewed;
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

/*
 * The store is raised to the present, unless a witness contradicts the clock. Says so in y. A floor of the future would
 * be an outage: nothing is signed until then.
 */
inline jump() {
  lead = (leads > 0 && now < PLACES && !s[i].lag);
#ifdef WITHOUT_WITNESS
  y = 1;
#else
  y = (CLOCK + lead == now);
#endif
  leads = leads - lead; /* the time service has set it since */
  if
  :: y == 1 ->
#ifndef WITHOUT_JUMP
    MINE.floor = HIGHER(MINE.floor, CLOCK + lead);
#endif
    assert(MINE.floor <= now);
    MINE.era = era;
    s[i].seen = MINE.renewed;
    printf("signer %d raises its store to slot %d\n", i, MINE.floor)
  :: else
  fi;
  lead = 0
}

inline endSignature() { s[i].root = 0; s[i].place = 0; s[i].key = 0; s[i].isAsked = 0; s[i].isReleased = 0 }

inline endProcess() {
#ifdef UNDER_SIGNER
  hasShelf = 0;
#endif
  s[i].up = 0; s[i].floor = 0; s[i].seen = 0;
  x = 0;
  do
  :: x >= KEYS -> break
  :: else -> s[i].known[x] = 0; x++
  od;
  endSignature()
}

inline release() {
  printf("signer %d RELEASES key %d, slot %d, root %d\n", i, s[i].key, s[i].place, s[i].root);
  x = s[i].key * ROWS + s[i].place;
  released[x] = released[x] | s[i].root;
  assert(released[x] != 3)
}

active proctype world() {
  d_step {
    s[0].up = 1; st[0].end = 0
#ifdef IS_SHARED
    ; s[1].up = 1
#endif
  }
  do
  :: atomic {
      if
      :: i = 0
#ifdef IS_SHARED
      :: i = 1
#endif
      fi;
      if
      :: s[i].up && s[i].root == NONE && asks > 0 ->
        if
        :: k = 0
        :: KEYS > 1 -> k = KEYS - 1
        fi;
        if
        :: t = 1
        :: now > 1 -> t = 2
        :: now > 2 -> t = 3
        :: now < 2 -> t = 2
        :: now < 3 -> t = 3
        fi;
        if
        :: r = 1
        :: r = 2
        fi;
        d_step {
          asks--;
          if
#ifndef WITHOUT_AHEAD_OF_CLOCK
          :: t > CLOCK -> skip
#endif
#ifdef ENCLAVE
#ifndef WITHOUT_LOCAL_FLOOR
          :: t <= s[i].floor -> skip
#endif
#endif
          :: else -> s[i].root = r; s[i].place = t; s[i].key = k; s[i].isAsked = 1
          fi
        }
      :: s[i].isAsked ->
        d_step {
          s[i].isAsked = 0;
          judge(MINE.key[s[i].key], MINE.floor, 0, 0, s[i].place, s[i].root, 0);
          if
          /* Another server than the record of the store names: nothing is recorded before a jump. */
#ifndef WITHOUT_LINEAGE
          :: MINE.era != era -> jump(); endSignature()
#endif
          /* A store without the incarnation that was seen last was put back. */
#ifndef WITHOUT_RENEWAL
          :: MINE.renewed < s[i].seen -> jump(); endSignature()
#endif
          :: else ->
            if
#ifndef WITHOUT_MEMORY
            :: HIGHER(MINE.key[s[i].key].high, MINE.floor) < s[i].known[s[i].key] ->
              printf("the store has lost what signer %d recorded\n", i);
              jump(); endSignature()
#endif
            :: else ->
              if
              :: verdict == SAFE || verdict == REPEAT ->
                printf("signer %d is asked for key %d, slot %d, root %d: answer %d\n", i, s[i].key, s[i].place, s[i].root, verdict);
#ifdef WITHOUT_DURABLE_RECORD
                release(); s[i].isReleased = 1
#else
                if
                :: verdict == SAFE -> record(MINE.key[s[i].key], 0, s[i].place, s[i].root)
                :: else
                fi;
                s[i].known[s[i].key] = HIGHER(s[i].known[s[i].key], s[i].place)
#endif
              :: else -> endSignature()
              fi
            fi
          fi
        }
      :: s[i].root != NONE && !s[i].isAsked ->
        d_step {
          if
          :: s[i].isReleased -> record(MINE.key[s[i].key], 0, s[i].place, s[i].root)
          :: else -> release()
          fi;
          endSignature()
        }

      :: s[i].up && stops > 0 -> d_step { stops--; endProcess(); printf("signer %d is killed\n", i) }
#ifdef FILES
      :: s[i].up && stops > 0 && s[i].root == NONE && MINE.end == 0 && number < 7 ->
        d_step { stops--; number++; MINE.end = number; MINE.endAt = now; closedMark = number; endProcess(); printf("signer %d ends in order: number %d\n", i, number) }
#endif
      :: !s[i].up ->
        d_step {
          s[i].up = 1;
          printf("signer %d starts\n", i);
#ifdef FILES
          if
#ifndef WITHOUT_CLOSED_MARK
          :: MINE.end == 0 || MINE.end != closedMark ->
            jump();
            if
            :: y == 0 -> s[i].up = 0
            :: else -> MINE.end = 0; closedMark = 0
            fi
#endif
#ifndef WITHOUT_END_TIME
          :: MINE.end != 0 && MINE.end == closedMark && MINE.endAt < now ->
            jump();
            if
            :: y == 0 -> s[i].up = 0
            :: else -> MINE.end = 0; closedMark = 0
            fi
#endif
          :: else -> MINE.end = 0; closedMark = 0
          fi
#endif
#ifdef ENCLAVE
          s[i].floor = CLOCK
#endif
        }

      :: i == 0 && now < PLACES -> d_step { now++; printf("slot %d\n", now) }
#ifndef ENCLAVE
      :: lags > 0 -> d_step { lags--; s[i].lag = 1; printf("the clock of signer %d falls behind\n", i) }
      :: s[i].lag > 0 -> s[i].lag = 0
#endif

      /* The standby, or a copy. */
      :: i == 0 && losses > 0 -> d_step { hasShelf = 1; copyStore(st[0], st[SHELF]); printf("the standby, or a copy, is what the store is now\n") }
#ifdef FAILOVER
      :: i == 0 && losses > 0 && hasShelf -> d_step { losses--; copyStore(st[SHELF], st[0]); era++; printf("the standby is promoted\n") }
#endif
#ifdef UNDER_SIGNER
      :: i == 0 && losses > 0 && hasShelf && s[0].up -> d_step { losses--; copyStore(st[SHELF], st[0]); stops = 0; printf("the store loses commits under signer 0\n") }
#endif
#ifdef FILES
      :: i == 0 && losses > 0 && hasShelf && !s[0].up -> d_step { losses--; copyStore(st[SHELF], st[0]); printf("the copy is put in the place of the file\n") }
#endif
#ifdef FOLDERS
      :: i == 0 && losses > 0 && !s[0].up && MINE.end != 0 && MINE.end == closedMark -> d_step { hasShelf = 1; shelfMark = closedMark; copyStore(st[0], st[SHELF]); printf("the folder is copied, and the copy goes on\n") }
      :: i == 0 && losses > 0 && hasShelf && shelfMark != 0 && st[SHELF].end == shelfMark && st[SHELF].endAt < now && !s[0].up -> d_step { losses--; copyStore(st[SHELF], st[0]); closedMark = shelfMark; printf("the older folder is renamed back, with its mark\n") }
#endif
#ifdef PUT_BACK
      :: i == 0 && s[0].up && MINE.renewed < 3 ->
        d_step {
          if
          :: MINE.renewed < s[0].seen -> jump()
          :: else -> MINE.renewed++; s[0].seen = MINE.renewed; printf("signer 0 renews the incarnation\n")
          fi
        }
      :: s[i].up && s[i].seen < MINE.renewed -> d_step { s[i].seen = MINE.renewed }
      :: i == 0 && losses > 0 && hasShelf && s[0].up && s[1].up && st[SHELF].renewed < s[0].seen && st[SHELF].renewed < s[1].seen -> d_step { losses--; copyStore(st[SHELF], st[0]); stops = 0; printf("an earlier state of the store is put back under its signers\n") }
#endif
#ifdef ENCLAVE
      :: i == 0 && losses > 0 && hasShelf && !s[0].up && !s[1].up -> d_step { losses--; copyStore(st[SHELF], st[0]); printf("the parent puts an older table back\n") }
#endif
      :: else
      fi;
      d_step { i = 0; k = 0; t = 0; r = 0; d = 0; forget() }
    }
  od
}
