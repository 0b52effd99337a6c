/*
 * A distributed key: PARTICIPANTS signers with a share and a store each, of which THRESHOLD sign together. FAULTY of
 * them have lost their records, were cloned, restored, or are hostile: they sign whatever they are asked, so they have
 * signed everything from the start. Clients and combiners ask any participant for any message, in any order. Two
 * slashable messages need two sets of THRESHOLD participants, which have 2 THRESHOLD - PARTICIPANTS in common: while
 * fewer than these are faulty, one that is not has refused the second (docs/specification/keys.md#distributed).
 */
#include "rules.pml"

#ifndef PARTICIPANTS
#define PARTICIPANTS 4
#endif
#ifndef THRESHOLD
#define THRESHOLD 3
#endif
#ifndef FAULTY
#define FAULTY (2 * THRESHOLD - PARTICIPANTS - 1)
#endif
#ifndef ASKS
#define ASKS 6
#endif
#define SOUND (PARTICIPANTS - FAULTY)
#ifdef VOTES
#define SOURCES PLACES
#else
#define SOURCES 1
#endif
#define ROOTS 2
#define MESSAGES ((PLACES + 1) * SOURCES * ROOTS)
#define MESSAGE(w, t, r) (((t) * SOURCES + (w)) * ROOTS + (r) - 1)
#define TARGET_OF(m) ((m) / (SOURCES * ROOTS))
#define SOURCE_OF(m) (((m) / ROOTS) % SOURCES)

Key store[SOUND];
byte partials[MESSAGES]; /* a bit for each sound participant that has signed it */
byte asks = ASKS;
byte i, w, t, r, m, n, bits, count;

inline countPartials(aMessage) {
  count = FAULTY; bits = partials[aMessage];
  do
  :: bits == 0 -> break
  :: else -> count = count + bits % 2; bits = bits / 2
  od
}

/* The message m is signed with the whole key now: no other that is may be slashable against it. */
inline lookForPair() {
  n = ROOTS * SOURCES;
  do
  :: n >= MESSAGES -> break
  :: else ->
    countPartials(n);
    if
    :: n != m && count >= THRESHOLD ->
      assert(TARGET_OF(n) != TARGET_OF(m));
      assert(!(SOURCE_OF(n) < SOURCE_OF(m) && TARGET_OF(n) > TARGET_OF(m)));
      assert(!(SOURCE_OF(m) < SOURCE_OF(n) && TARGET_OF(m) > TARGET_OF(n)))
    :: else
    fi;
    n++
  od
}

active proctype world() {
  do
  :: asks == 0 -> break
  :: asks > 0 ->
    atomic {
      select(i : 0 .. SOUND - 1);
      select(t : 1 .. PLACES);
      select(w : 0 .. SOURCES - 1);
      select(r : 1 .. ROOTS);
      d_step {
        asks--;
        judge(store[i], 0, 0, w, t, r, 0);
        if
        :: verdict == SAFE -> record(store[i], w, t, r)
        :: else
        fi;
        if
        :: verdict == SAFE || verdict == REPEAT ->
          m = MESSAGE(w, t, r);
          printf("participant %d signs (source %d, target %d, root %d)\n", i, w, t, r);
          partials[m] = partials[m] | (1 << i);
          countPartials(m);
          if
          :: count >= THRESHOLD -> lookForPair()
          :: else
          fi
        :: else
        fi;
        forget(); i = 0; w = 0; t = 0; r = 0; m = 0; n = 0; bits = 0; count = 0
      }
    }
  od
}
