/*
 * Whether a trace of the signers of a real fleet (test/support/fleet/binding-trace.ts) is one that the rules of binding.pml
 * allow. The file of the variable TRACE has what took effect, in its order: calls on the row SLASHING_STORE and on the
 * identities of the stores, jumps, and each time that a signer was asked whether it may sign. Spin looks for moments at
 * which each signer came to know what it wrote or lost. When there are such moments, it reports the assertion
 * (accepted); when there are none, it reports nothing (rejected). Times are in milliseconds, by the signers' clocks.
 */
#define SIGNERS 31
#define NUMBERS 512
#define BOUND 10000
#define MARGIN 2000
#define WAIT 12000
#define WAIT_TO_TAKE_OVER WAIT
#define NEVER -1

c_decl {
#define MAX_EVENTS 20000
static int N_EVENTS, EVENTS[MAX_EVENTS][22];

/* Numbers in the order of test/model/binding-conformance.ts. */
static void readTrace(void) {
  FILE *file = fopen(getenv("TRACE"), "r");
  int n, m, isWhole = file && fscanf(file, "%d", &N_EVENTS) == 1 && N_EVENTS <= MAX_EVENTS;
  for (n = 0; isWhole && n < N_EVENTS; n++)
    for (m = 0; m < 22; m++) isWhole = isWhole && fscanf(file, "%d", &EVENTS[n][m]) == 1;
  if (!isWhole) { fprintf(stderr, "the trace is not whole\n"); exit(2); }
  fclose(file);
}
}

#define START 1
#define STOP 2
#define RIGHT 3
#define READ 4
#define OWN 5
#define INCARNATE 6
#define USE_END 7
#define JUMP 8
#define BIND 9
#define BEAT 10

typedef Row { int id; int binding; int number; int signers; int heartbeat }
typedef Moment { int monotonic; int wall }
typedef Store { int id; int top; int closedAt; bit held[NUMBERS] }

/* Why a number was written into the store. */
#define OF_END 1
#define OF_TAKE_OVER 2
#define OF_NEW_TABLE 3
#define OF_LEAVE 4
typedef Signer {
  bit up; bit isStopped; bit isBound; bit isNew; bit hasSeen; bit hasRead; bit isRenewing; bit isRefused; bit hasJumped; bit hasUsedEnd; bit isRaised; bit isWritten;
  byte at; byte made;
  int latest; int age; int announced; int since; int seen; int rests; /* as in fleet.pml */
  int own; int lowest; int closedAt; int time; int number; int endAt;
  Row bound; Row read; Row sighting; Row written;
  Moment started; Moment began; Moment renewal; Moment looked; Moment sighted; Moment announcedAt; Moment jumpedAt; Moment basis;
  Moment writeBegan; Moment writeBasis; Moment writeEnded
}
Signer s[SIGNERS];
Store st[4];
Row row, given, next;
int usedEnd = NEVER;
int event;
byte kind, i;
Moment began, ended;
int answer, tableTime, top, lowest, closedAt, raised, storeId, x;
bit isGood;

#define MINE st[s[i].at]
#define HOLDS(store, n) ((n) > 0 && store.held[n] && (n) >= s[i].lowest)
#include "binding.pml"

#define LATER(a, b) ((a) > (b) -> (a) : (b))
#define ELAPSED(to, from) LATER(to.monotonic - from.monotonic, to.wall - from.wall)
#define STEPPED(to, from) ((to.wall - from.wall) - (to.monotonic - from.monotonic))
#define IS_SAME_BEAT(a, b) (IS_SAME_ROW(a, b) && a.heartbeat == b.heartbeat)
#define SELF (1 << i)
#define IS_LATE_LOOK (!s[i].isBound && !s[i].isStopped && s[i].hasRead)
#define ENDED_AGO (s[i].time - s[i].closedAt)
#define HAS_ENDED (IS_NAMED(s[i].read) && s[i].read.signers == 0 && s[i].own == s[i].read.number && s[i].closedAt != NEVER && ENDED_AGO >= 0 && ENDED_AGO + 1000 < BOUND)
#define IS_OF_NEW_TABLE (s[i].read.id == 0 && s[i].isNew && ELAPSED(s[i].looked, s[i].started) < WAIT)

inline setMoment(aTo, aFrom) { aTo.monotonic = aFrom.monotonic; aTo.wall = aFrom.wall }
inline setBeat(aTo, aFrom) { setRow(aTo, aFrom); aTo.heartbeat = aFrom.heartbeat }

inline load() {
  c_code {
    const int *e = EVENTS[now.event];
    now.kind = e[0]; now.i = e[1]; now.began.monotonic = e[2]; now.began.wall = e[3]; now.ended.monotonic = e[4]; now.ended.wall = e[5];
    now.answer = e[6];
    now.given.id = e[7]; now.given.binding = e[8]; now.given.number = e[9]; now.given.signers = e[10]; now.given.heartbeat = e[11];
    now.next.id = e[12]; now.next.binding = e[13]; now.next.number = e[14]; now.next.signers = e[15];
    now.tableTime = e[16]; now.top = e[17]; now.lowest = e[18]; now.closedAt = e[19]; now.raised = e[20]; now.storeId = e[21];
  }
}

inline lose() { s[i].isBound = 0; s[i].isRenewing = 0; s[i].hasRead = 0 }

/* The signer gets the answer of its write. */
inline become() {
  s[i].isWritten = 0; s[i].isRenewing = 0;
  s[i].rests = ELAPSED(s[i].writeEnded, s[i].writeBasis);
  if
  :: HAS_LAPSED -> lose()
  :: else ->
    s[i].isBound = 1;
    setRow(s[i].bound, s[i].written);
    setMoment(s[i].began, s[i].writeBegan);
    s[i].announced = 0; s[i].hasSeen = 0; s[i].hasRead = 0;
    s[i].latest = LATER(s[i].latest, s[i].bound.binding)
  fi
}

inline judgeRead() {
  isGood = IS_SAME_BEAT(given, row) && (!s[i].isBound || s[i].isStopped || s[i].isRefused);
  setBeat(s[i].read, given); setMoment(s[i].looked, began);
  s[i].time = tableTime; s[i].hasRead = 1; s[i].isRefused = 0; s[i].made = 0; s[i].number = 0;
  if
  :: !s[i].isBound && !s[i].isStopped ->
    s[i].hasJumped = 0; s[i].hasUsedEnd = 0;
    s[i].latest = LATER(s[i].latest, given.binding);
    if
    :: s[i].hasSeen && IS_SAME_BEAT(s[i].sighting, given) -> skip
    :: else -> s[i].hasSeen = 1; setBeat(s[i].sighting, given); setMoment(s[i].sighted, ended)
    fi;
    s[i].seen = ended.monotonic - s[i].sighted.monotonic
  :: else
  fi
}

inline judgeOwn() {
  if
  :: s[i].at == 0 -> s[i].at = storeId; MINE.id = storeId
  :: else
  fi;
  isGood = (s[i].at == storeId && MINE.top == top && (MINE.closedAt == closedAt || raised));
  MINE.closedAt = closedAt;
  s[i].own = top; s[i].lowest = lowest; s[i].closedAt = closedAt; s[i].isRaised = raised;
  if
  :: s[i].isBound && !s[i].isStopped && !s[i].isRenewing ->
    s[i].isRenewing = 1; s[i].hasRead = 0; setMoment(s[i].renewal, began)
  :: IS_LATE_LOOK && !IS_NAMED(s[i].read) -> s[i].announced = 0
  :: else
  fi
}

/* For which of its reasons the signer writes a number into its store. */
inline judgeIncarnate() {
  if
  :: s[i].isStopped ->
    isGood = (s[i].hasRead && IS_MINE(s[i].read) && s[i].read.signers == SELF && closedAt <= s[i].time);
    s[i].made = OF_LEAVE
  :: !s[i].isStopped && s[i].isBound -> isGood = (s[i].isRenewing && closedAt == NEVER)
  :: IS_LATE_LOOK && IS_OF_NEW_TABLE -> isGood = (closedAt == NEVER); s[i].made = OF_NEW_TABLE; setMoment(s[i].basis, s[i].started)
  :: IS_LATE_LOOK && !IS_OF_NEW_TABLE && HAS_ENDED ->
    isGood = (closedAt == NEVER); s[i].made = OF_END; s[i].endAt = s[i].closedAt;
    s[i].basis.monotonic = s[i].looked.monotonic - ENDED_AGO - 1000; s[i].basis.wall = s[i].looked.wall - ENDED_AGO - 1000
  :: IS_LATE_LOOK && !IS_OF_NEW_TABLE && !HAS_ENDED && MAY_TAKE_OVER ->
    isGood = (closedAt == NEVER && (s[i].hasJumped || (s[i].isRaised && IS_NAMED(s[i].read))));
    s[i].made = OF_TAKE_OVER; setMoment(s[i].basis, s[i].jumpedAt);
    if
    :: !s[i].hasJumped -> setMoment(s[i].basis, s[i].looked)
    :: else
    fi
  :: IS_LATE_LOOK && !IS_OF_NEW_TABLE && !HAS_ENDED && !MAY_TAKE_OVER ->
    s[i].since = ELAPSED(began, s[i].announcedAt);
    if
    :: s[i].announced > 0 && !HOLDS(MINE, s[i].announced) -> s[i].announced = 0
    :: else
    fi;
    isGood = (closedAt == NEVER && !s[i].isRaised && MAY_ANNOUNCE(s[i].read));
    s[i].announced = (answer -> top : 0); setMoment(s[i].announcedAt, began)
  :: else
  fi;
  if
  :: answer && isGood ->
    isGood = (MINE.top == s[i].own && !MINE.held[top]);
    MINE.top = top; MINE.closedAt = closedAt; MINE.held[top] = 1;
    s[i].own = top; s[i].lowest = lowest; s[i].number = top
  :: else
  fi
}

inline judgeBind() {
  isGood = (s[i].number > 0 && next.number == s[i].number && next.signers == SELF && next.id == MINE.id && IS_SAME_BEAT(given, s[i].read));
  if
  :: s[i].made == OF_END -> isGood = (isGood && s[i].hasUsedEnd && next.binding == s[i].read.binding)
  :: s[i].made == OF_TAKE_OVER -> isGood = (isGood && next.binding == LATER(s[i].read.binding, s[i].latest) + 1)
  :: s[i].made == OF_NEW_TABLE -> isGood = (isGood && next.binding == 1)
  :: else -> isGood = 0
  fi;
  isGood = (isGood && answer == IS_SAME_BEAT(row, given));
  setMoment(s[i].writeBegan, began); setMoment(s[i].writeBasis, s[i].basis);
  s[i].made = 0; s[i].hasRead = 0;
  write()
}

inline judgeBeat() {
  isGood = (next.id == MINE.id && next.binding == given.binding && next.number == s[i].own && answer == IS_SAME_ROW(row, given));
  if
  :: s[i].isStopped ->
    isGood = (isGood && s[i].hasRead && IS_SAME_ROW(given, s[i].read) && IS_MINE(given) && given.binding == s[i].bound.binding &&
      next.signers == given.signers - SELF && (next.signers > 0 || (s[i].made == OF_LEAVE && s[i].number > 0)))
  :: !s[i].isStopped && s[i].isBound ->
    isGood = (isGood && s[i].isRenewing && IS_MINE(given) && next.signers == given.signers &&
      (IS_SAME_ROW(given, s[i].bound) || (s[i].hasRead && IS_SAME_ROW(given, s[i].read))));
    setMoment(s[i].writeBegan, s[i].renewal); setMoment(s[i].writeBasis, s[i].began)
  :: else ->
    s[i].since = ELAPSED(began, s[i].announcedAt);
    isGood = (isGood && s[i].hasRead && IS_SAME_ROW(given, s[i].read) && IS_CONFIRMED(given) && HOLDS(MINE, s[i].announced) &&
      next.signers == (given.signers | SELF));
    setMoment(s[i].writeBegan, began); setMoment(s[i].writeBasis, s[i].announcedAt); s[i].hasRead = 0
  fi;
  s[i].isRefused = !answer;
  write()
}

inline write() {
  if
  :: answer ->
    setRow(row, next); row.heartbeat = given.heartbeat + 1;
    if
    :: kind == BEAT -> row.heartbeat = heartbeats + 1
    :: else
    fi;
    heartbeats = row.heartbeat;
    if
    :: !s[i].isStopped -> s[i].isWritten = 1; setRow(s[i].written, next); setMoment(s[i].writeEnded, ended)
    :: else
    fi
  :: else
  fi
}
int heartbeats; /* of the row */

inline judge() {
  isGood = 0;
  if
  :: kind == START ->
    s[i].up = 1; s[i].isNew = answer; setMoment(s[i].started, began); isGood = 1
  :: kind == STOP -> s[i].isStopped = 1; isGood = 1
  :: kind == RIGHT ->
    s[i].age = ELAPSED(began, s[i].began);
    x = STEPPED(began, s[i].began);
    isGood = (answer == (MAY_SIGN && x <= MARGIN && -x <= MARGIN))
  :: kind == READ -> judgeRead()
  :: kind == OWN -> judgeOwn()
  :: kind == INCARNATE -> judgeIncarnate()
  :: kind == USE_END ->
    isGood = (s[i].made == OF_END && closedAt == s[i].endAt && answer == (usedEnd < closedAt));
    s[i].hasUsedEnd = answer;
    usedEnd = LATER(usedEnd, closedAt)
  :: kind == JUMP ->
    isGood = (IS_LATE_LOOK && MAY_TAKE_OVER); s[i].hasJumped = 1; setMoment(s[i].jumpedAt, began)
  :: kind == BIND -> judgeBind()
  :: kind == BEAT -> judgeBeat()
  fi
}

/* After it has looked at its store, which does not hold the row's number any more. */
#define MAY_LOSE (s[i].isBound && s[i].isRenewing && ((s[i].hasRead && !IS_MINE(s[i].read)) || (!s[i].hasRead && !IS_MINE(s[i].bound))))

active proctype checker() {
  c_code { readTrace(); };
  st[1].closedAt = NEVER; st[2].closedAt = NEVER; st[3].closedAt = NEVER;
  do
  :: c_expr { now.event == N_EVENTS } -> assert(false)
  :: atomic { c_expr { now.event < N_EVENTS } ->
      d_step { load() };
      if
      :: s[i].isWritten -> d_step { become() }
      :: !s[i].isWritten || kind == RIGHT || kind == STOP -> skip
      fi;
      if
      :: MAY_LOSE -> d_step { lose() }
      :: skip
      fi;
      d_step { judge() };
      if
      :: isGood -> event++
      :: else -> goto dead
      fi
    }
  od;
dead:
  false
}
