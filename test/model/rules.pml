/*
 * The rules of a slashing store, as the worlds (fleet.pml, moves.pml, losses.pml) and the checker of traces (trace.pml)
 * use them. docs/specification/slashing.md is the law that they spell.
 *
 * A message is a vote with a source and a target. A block is one whose source is always 0: then nothing surrounds, and
 * the rules of votes are those of blocks. Places (targets, slots) count from 1, so a mark of 0 refuses nothing.
 * VOTES: sources matter. Each WITHOUT_… takes one protection away.
 */
#ifndef PLACES
#define PLACES 3
#endif
#define ROWS (PLACES + 1)

#define NONE 0
#define NOROOT 3 /* an entry without a root; 1 and 2 are two roots */

/* What a store answers. */
#define SAFE 1
#define REPEAT 2
#define RETIRED 3
#define DOUBLE 4
#define SURROUNDING 5
#define SURROUNDED 6
#define LOW_SOURCE 7
#define LOW_TARGET 8
#define AFTER 9
#define ROLLBACK 10

/* The record of a key. Two votes of one target leave the lowest and the highest source, and no root. */
typedef Key {
  byte tenure;
  byte low;
  byte high;
  byte root[ROWS];
#ifdef VOTES
  byte lowSource;
  byte highSource;
  byte least[ROWS];
  byte most[ROWS];
#endif
}

/* Of one step: `forget` ends each. (Hidden variables would rule out a search for the shortest counterexample.) */
short verdict, x, y, mark, markSource, keptLow, keptLowSource;
byte isOfMessage, surrounds, isSurrounded, hasRecords, hasPruned;

inline forget() {
  verdict = 0; x = 0; y = 0; mark = 0; markSource = 0; keptLow = 0; keptLowSource = 0;
  isOfMessage = 0; surrounds = 0; isSurrounded = 0; hasRecords = 0; hasPruned = 0
}

#define HIGHER(a, b) ((a) > (b) -> (a) : (b))
#define IS_ENDED(tenure) ((tenure) % 2 == 1)
#define BEGUN(tenure) ((tenure) + 1)

#ifdef VOTES
#define SOURCE(s) (s)
#define IS_SOURCE(key, t, s) (key.least[t] == (s) && key.most[t] == (s))
#define LOW_SOURCE_OF(key) (key.lowSource)
#define HIGH_SOURCE_OF(key) (key.highSource)
#else
#define SOURCE(s) 0
#define IS_SOURCE(key, t, s) true
#define LOW_SOURCE_OF(key) 0
#define HIGH_SOURCE_OF(key) 0
#endif

/* A copy of another tenure, or of an ended one, signs nothing. */
#ifdef WITHOUT_TENURE
#define IS_IN_TENURE(key, carried) true
#else
#ifdef WITHOUT_TENURE_OF_COPY
#define IS_IN_TENURE(key, carried) (!IS_ENDED(key.tenure))
#else
#define IS_IN_TENURE(key, carried) ((carried) == key.tenure && !IS_ENDED(key.tenure))
#endif
#endif

/* EIP-3076 condition 3, second half. */
inline lookForSurrounds(aKey, aSource, aPlace) {
  surrounds = 0; isSurrounded = 0;
#ifdef VOTES
#ifndef WITHOUT_SURROUND
  x = 1;
  do
  :: x >= ROWS -> break
  :: else ->
    if
    :: aKey.root[x] != NONE && x < (aPlace) && aKey.most[x] > (aSource) -> surrounds = 1
    :: aKey.root[x] != NONE && x > (aPlace) && aKey.least[x] < (aSource) -> isSurrounded = 1
    :: else
    fi;
    x++
  od
#endif
#endif
}

/* verdict = what a complete store says of a message, given its floor. */
inline judge(aKey, aFloor, aFloorSource, aSource, aPlace, aRoot, aTenure) {
  if
  :: !(IS_IN_TENURE(aKey, aTenure)) -> verdict = RETIRED
  :: else ->
    if
    :: SOURCE(aSource) > (aPlace) -> verdict = AFTER
    :: else ->
#ifdef WITHOUT_DOUBLE
      if
      :: aKey.root[aPlace] == (aRoot) -> verdict = REPEAT
#else
      if
      :: aKey.root[aPlace] != NONE -> verdict = (aKey.root[aPlace] == (aRoot) && IS_SOURCE(aKey, aPlace, aSource) -> REPEAT : DOUBLE)
#endif
      :: else ->
        lookForSurrounds(aKey, aSource, aPlace);
        if
        :: surrounds -> verdict = SURROUNDING
        :: else ->
          if
          :: isSurrounded -> verdict = SURROUNDED
          :: else ->
            if
            :: SOURCE(aSource) < HIGHER(LOW_SOURCE_OF(aKey), aFloorSource) -> verdict = LOW_SOURCE
            :: else ->
              verdict = ((aPlace) <= HIGHER(aKey.low, aFloor) -> LOW_TARGET : SAFE)
            fi
          fi
        fi
      fi
    fi
  fi
}

/* The same of a store that keeps the last message and the highest numbers (dynamodb). */
inline judgeByMarks(aKey, aFloor, aFloorSource, aSource, aPlace, aRoot, aTenure) {
  isOfMessage = (aKey.high > (aFloor) && HIGH_SOURCE_OF(aKey) >= (aFloorSource) && aKey.high == (aPlace) && aKey.root[aPlace] != NONE);
  if
  :: !(IS_IN_TENURE(aKey, aTenure)) -> verdict = RETIRED
  :: else ->
    if
    :: SOURCE(aSource) > (aPlace) -> verdict = AFTER
    :: else ->
      if
      :: isOfMessage -> verdict = (aKey.root[aPlace] == (aRoot) && IS_SOURCE(aKey, aPlace, aSource) -> REPEAT : DOUBLE)
      :: else ->
        if
        :: SOURCE(aSource) < HIGHER(HIGH_SOURCE_OF(aKey), aFloorSource) -> verdict = LOW_SOURCE
        :: else -> verdict = ((aPlace) <= HIGHER(aKey.high, aFloor) -> LOW_TARGET : SAFE)
        fi
      fi
    fi
  fi
}

/* A first message sets the low-water mark. */
inline record(aKey, aSource, aPlace, aRoot) {
  if
  :: aKey.low == 0 ->
    aKey.low = (aPlace);
#ifdef VOTES
    aKey.lowSource = (aSource)
#endif
  :: else
  fi;
  aKey.root[aPlace] = (aRoot);
  aKey.high = HIGHER(aKey.high, aPlace);
#ifdef VOTES
  aKey.least[aPlace] = (aSource); aKey.most[aPlace] = (aSource);
  aKey.highSource = HIGHER(aKey.highSource, aSource)
#endif
}

inline recordMark(aKey, aSource, aPlace, aRoot) {
  x = 1;
  do
  :: x >= ROWS -> break
  :: else -> aKey.root[x] = NONE; x++
  od;
  record(aKey, aSource, aPlace, aRoot)
}

/* Deletes the oldest entry, never the highest; the marks rise to it and to the lowest entry that stays. */
inline prune(aKey) {
  x = 1;
  do
  :: x >= ROWS || aKey.root[x] != NONE -> break
  :: else -> x++
  od;
  y = x + 1;
  do
  :: y >= ROWS || aKey.root[y] != NONE -> break
  :: else -> y++
  od;
  if
  :: y < ROWS ->
    hasPruned = 1;
    aKey.root[x] = NONE;
#ifndef WITHOUT_PRUNED_MARKS
    aKey.low = HIGHER(aKey.low, y);
#endif
#ifdef VOTES
    keptLowSource = 255;
    mark = aKey.most[x];
    aKey.least[x] = 0; aKey.most[x] = 0;
    do
    :: y >= ROWS -> break
    :: else ->
      if
      :: aKey.root[y] != NONE && aKey.least[y] < keptLowSource -> keptLowSource = aKey.least[y]
      :: else
      fi;
      y++
    od;
#ifndef WITHOUT_PRUNED_MARKS
    aKey.lowSource = HIGHER(aKey.lowSource, HIGHER(mark, keptLowSource))
#endif
#endif
  :: else -> hasPruned = 0
  fi
}

inline clear(aKey) {
  aKey.tenure = 0; aKey.low = 0; aKey.high = 0;
#ifdef VOTES
  aKey.lowSource = 0; aKey.highSource = 0;
#endif
  x = 1;
  do
  :: x >= ROWS -> break
  :: else ->
    aKey.root[x] = NONE;
#ifdef VOTES
    aKey.least[x] = 0; aKey.most[x] = 0;
#endif
    x++
  od
}

/*
 * What a file says of a key (history/export.ts): its entries; where the marks refuse more than the entries would, one
 * entry without a root says it. Only entries stand in a file. `file` gets the highest of them too.
 */
inline export(aKey, aFloor, aFloorSource, aFile) {
  clear(aFile);
  mark = HIGHER(aKey.low, aFloor);
#ifdef VOTES
  markSource = HIGHER(aKey.lowSource, aFloorSource);
  /* isOfMessage: the entries say as much as the marks. */
  isOfMessage = 1; y = 0;
  x = 1;
  do
  :: x >= ROWS -> break
  :: else ->
    if
    :: aKey.root[x] != NONE ->
      y++;
      if
      :: x < mark || aKey.least[x] < markSource -> isOfMessage = 0
      :: else
      fi
    :: else
    fi;
    x++
  od;
  if
  :: y == 0 && mark > 0 -> isOfMessage = 0
  :: else
  fi;
  if
  :: isOfMessage ->
    x = 1;
    do
    :: x >= ROWS -> break
    :: else ->
      aFile.root[x] = aKey.root[x]; aFile.least[x] = aKey.least[x]; aFile.most[x] = aKey.most[x];
      if
      :: aKey.root[x] != NONE ->
        aFile.high = x; aFile.highSource = HIGHER(aFile.highSource, aKey.most[x])
      :: else
      fi;
      x++
    od
  :: else ->
    y = HIGHER(aKey.high, mark);
    aFile.high = y; aFile.highSource = HIGHER(aKey.highSource, markSource);
    aFile.root[y] = NOROOT; aFile.least[y] = aFile.highSource; aFile.most[y] = aFile.highSource
  fi;
#else
  x = HIGHER(mark, 1);
  do
  :: x >= ROWS -> break
  :: else ->
    aFile.root[x] = aKey.root[x];
    if
    :: aKey.root[x] != NONE -> aFile.high = x
    :: else
    fi;
    x++
  od;
  if
  :: aFile.high == 0 && mark > 0 -> aFile.root[mark] = NOROOT; aFile.high = mark
  :: else
  fi;
#endif
  mark = 0
}

/* A store of marks says its last message, or its marks without a root. */
inline exportMark(aKey, aFloor, aFloorSource, aFile) {
  clear(aFile);
  y = HIGHER(aKey.high, aFloor);
  if
  :: y > 0 ->
    aFile.high = y;
    aFile.root[y] = (aKey.high > (aFloor) && HIGH_SOURCE_OF(aKey) >= (aFloorSource) && aKey.root[y] != NONE -> aKey.root[y] : NOROOT);
#ifdef VOTES
    aFile.highSource = HIGHER(aKey.highSource, aFloorSource);
    aFile.least[y] = aFile.highSource; aFile.most[y] = aFile.highSource;
#endif
  :: else
  fi
}

/*
 * Merge a file (history/merge.ts). A key that has records is merged as minimal, unless the file is said to be complete:
 * everything up to the file's highest numbers is refused. Contradictions leave no root.
 */
inline merge(aKey, aFloor, aFloorSource, aFile, isComplete) {
  hasRecords = (aKey.low > 0 || aKey.high > 0);
  keptLow = HIGHER(aKey.low, aFloor);
  keptLowSource = HIGHER(LOW_SOURCE_OF(aKey), aFloorSource);
  mark = 0; markSource = 255;
  x = 1;
  do
  :: x >= ROWS -> break
  :: else ->
    if
    :: aFile.root[x] == NONE
    :: else ->
      if
      :: mark == 0 -> mark = x
      :: else
      fi;
#ifdef VOTES
      if
      :: aFile.least[x] < markSource -> markSource = aFile.least[x]
      :: else
      fi;
#endif
      if
      :: aKey.root[x] == NONE ->
        aKey.root[x] = (x <= keptLow -> NOROOT : aFile.root[x]);
#ifdef VOTES
        aKey.least[x] = aFile.least[x]; aKey.most[x] = aFile.most[x];
        if
        :: aFile.least[x] < keptLowSource -> aKey.root[x] = NOROOT
        :: else
        fi
#endif
      :: else ->
        if
        :: aKey.root[x] != aFile.root[x] -> aKey.root[x] = NOROOT
        :: else
        fi;
#ifdef VOTES
        if
        :: aKey.least[x] != aFile.least[x] || aKey.most[x] != aFile.most[x] ->
          aKey.root[x] = NOROOT;
          aKey.least[x] = (aFile.least[x] < aKey.least[x] -> aFile.least[x] : aKey.least[x]);
          aKey.most[x] = HIGHER(aKey.most[x], aFile.most[x])
        :: else
        fi
#endif
      fi
    fi;
    x++
  od;
  if
  :: aKey.low == 0 && mark > 0 ->
    aKey.low = mark;
#ifdef VOTES
    aKey.lowSource = markSource
#endif
  :: else
  fi;
  aKey.high = HIGHER(aKey.high, aFile.high);
#ifdef VOTES
  aKey.highSource = HIGHER(aKey.highSource, aFile.highSource);
#endif
#ifndef WITHOUT_MINIMAL
  if
  :: hasRecords && !(isComplete) ->
    aKey.low = HIGHER(aKey.low, aFile.high);
#ifdef VOTES
    aKey.lowSource = HIGHER(aKey.lowSource, aFile.highSource)
#endif
  :: else
  fi;
#endif
  mark = 0; markSource = 0
}

/* As the minimal strategy has it, what was imported may not even be signed again: a mark that rises keeps no root. */
inline mergeMark(aKey, aFile) {
  if
  :: aFile.high > aKey.high ->
    if
    :: aKey.high > 0 -> aKey.root[aKey.high] = NONE
    :: else
    fi;
    aKey.root[aFile.high] = NOROOT;
#ifdef VOTES
    aKey.least[aFile.high] = HIGHER(aKey.highSource, aFile.highSource);
    aKey.most[aFile.high] = HIGHER(aKey.highSource, aFile.highSource);
#endif
    aKey.high = aFile.high
  :: aFile.high == aKey.high && aFile.high > 0 ->
    if
    :: aKey.root[aKey.high] != aFile.root[aKey.high] -> aKey.root[aKey.high] = NOROOT
    :: else
    fi;
#ifdef VOTES
    if
    :: aKey.least[aKey.high] != aFile.least[aKey.high] || aKey.highSource != aFile.highSource -> aKey.root[aKey.high] = NOROOT
    :: else
    fi
#endif
  :: else ->
#ifdef VOTES
    if
    :: aKey.high > 0 && aFile.highSource > aKey.highSource -> aKey.root[aKey.high] = NOROOT
    :: else
    fi
#endif
  fi;
#ifdef VOTES
  aKey.highSource = HIGHER(aKey.highSource, aFile.highSource);
#endif
  aKey.low = HIGHER(aKey.low, 1 * (aKey.high > 0))
}

/* An ending always moves on to the next odd number. */
inline endTenure(aKey) {
#ifdef WITHOUT_ENDING_MOVES_ON
  if
  :: !IS_ENDED(aKey.tenure) -> aKey.tenure++
  :: else
  fi
#else
  aKey.tenure = aKey.tenure + (IS_ENDED(aKey.tenure) -> 2 : 1)
#endif
}

/* A beginning is a compare-and-set on the ended tenure that was read first. */
inline beginTenure(aKey, aTenure) {
#ifdef WITHOUT_COMPARE_AND_SET
  if
  :: IS_ENDED(aKey.tenure) -> aKey.tenure++
  :: else
  fi
#else
  if
  :: aKey.tenure == (aTenure) && IS_ENDED(aTenure) -> aKey.tenure++
  :: else
  fi
#endif
}
