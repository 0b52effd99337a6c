/*
 * What a signer goes by that is bound to a store (signer/chamber/store-binding.ts): for the fleet of the model
 * (fleet.pml), and for traces of real ones (binding-trace.pml). `s[i]` is the signer, MINE its store; HOLDS, BOUND and
 * WAIT are of the file that includes this.
 */
#ifdef WITHOUT_BINDING
#define MAY_SIGN (s[i].up && !s[i].isStopped)
#else
#define MAY_SIGN (s[i].up && !s[i].isStopped && s[i].isBound && s[i].age < BOUND)
#endif
#ifdef WITHOUT_INCARNATION
#define IS_NAMED(a) (a.binding >= s[i].latest && a.id == MINE.id)
#else
#ifdef WITHOUT_LATEST_BINDING
#define IS_NAMED(a) (a.id == MINE.id && HOLDS(MINE, a.number))
#else
#define IS_NAMED(a) (a.binding >= s[i].latest && a.id == MINE.id && HOLDS(MINE, a.number))
#endif
#endif
#define IS_MINE(a) (IS_NAMED(a) && ((a.signers >> i) & 1))
#define MAY_ANNOUNCE(a) (IS_NAMED(a) && (s[i].announced == 0 || s[i].since >= WAIT))
#define IS_CONFIRMED(a) (IS_NAMED(a) && s[i].announced > 0 && s[i].since < WAIT && a.number >= s[i].announced)
#define MAY_TAKE_OVER (s[i].seen >= WAIT_TO_TAKE_OVER)
#define HAS_LAPSED (s[i].rests >= WAIT)
#define IS_SAME_ROW(a, b) (a.id == b.id && a.binding == b.binding && a.number == b.number && a.signers == b.signers)

inline setRow(a, b) { a.id = b.id; a.binding = b.binding; a.number = b.number; a.signers = b.signers }
inline clearRow(a) { a.id = 0; a.binding = 0; a.number = 0; a.signers = 0 }
