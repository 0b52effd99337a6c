// A doubt is that the store may lack records of what was signed. It is a value with its cause. It comes from a store
// at its opening or in an answer, a signer that takes a fleet over, a start whose tables another party holds, a person.
// Here, and nowhere else, doubts become a jump: nothing that may be lost is later than the present, so everything up to
// the present is refused. One jump ends all doubts that came before it. One that fails is made again after a pause, and
// until a doubt is settled nothing is signed. The store's record keeps it until then, where the next start could not
// know of it.
//
// A key whose own marks lie beyond the floor is protected by them, and has no say in what the present is.

import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { higherMarks } from '../history/head.ts';
import { changeIncarnations, readIncarnations } from '../incarnation.ts';
import { floorFields } from '../jump.ts';
import type { Doubt, DoubtCause, OnJump, SlashingBackend, StoreFloor, StoreIdentity } from '../types.ts';

/** What a jump made now raises a store to. @throws SignerError clock_unconfirmed, slashing_unavailable */
export type Present = () => Promise<StoreFloor>;

interface DoubtsParts {
  readonly store: Pick<SlashingBackend, 'name' | 'jump' | 'identity' | 'incarnate'>;
  readonly present: Present;
  readonly onJump: OnJump;
  readonly log: Log;
}

export type Doubts = ReturnType<typeof openDoubts>;

/** Between a jump that failed and the next: doubled up to the largest. */
const PAUSE_MS = { first: 1_000, largest: 10_000 };
/** A failure that lasts is said so often: every minute or so. */
const FAILURES_PER_LINE = 6;

export function openDoubts(parts: DoubtsParts) {
  const { log } = parts;
  /** The latest of each cause: a jump that is under way may have begun before it. */
  const open = new Map<DoubtCause, Doubt>();
  let floorOfStart: StoreFloor | null = null;
  let attempt: Promise<void> | undefined;
  let failures = 0;
  let fault: SignerError | undefined;
  let again: NodeJS.Timeout | undefined;
  let noted: Promise<void> | undefined;
  let isClosed = false;

  async function jump(): Promise<void> {
    try {
      await endThoseThatAreOver(open);
      const settled = [...open.values()];
      if (settled.length === 0) return;
      const floor = await parts.present();
      const ofStore = settled.filter(({ cause }) => cause !== 'boot');
      if (ofStore.length > 0) await jumpTo(floor, ofStore, parts);
      // The tables may say what they like: the floor of a start is this process's own.
      if (ofStore.length < settled.length) {
        floorOfStart = higherMarks(floorOfStart, floor);
        parts.onJump('boot');
        log.info(floorFields(floor), `${WHY.boot}. ${RAISED}`);
      }
      for (const doubt of settled) if (open.get(doubt.cause) === doubt) open.delete(doubt.cause);
      failures = 0;
      fault = undefined;
      noted = undefined;
    } catch (error) {
      failed(error);
      throw error;
    }
  }

  /** A process that ends before the jump is followed by one that knows. What fails is tried with the next question. */
  async function note(cause: DoubtCause): Promise<void> {
    if (!REMEMBERED.has(cause)) return;
    noted ??= noteDoubt(parts.store, cause).catch(() => {
      noted = undefined;
    });
    await noted;
  }

  function failed(cause: unknown): void {
    fault = cause instanceof SignerError ? cause : new SignerError('slashing_unavailable', { cause });
    if (failures % FAILURES_PER_LINE === 0) log.error({ causes: [...open.keys()], err: cause }, NOT_RAISED);
    if (isClosed) return;
    const pauseMs = Math.min(PAUSE_MS.first * 2 ** failures, PAUSE_MS.largest);
    again = setTimeout(() => {
      again = undefined;
      void attemptOnce().catch(() => undefined);
    }, pauseMs).unref();
    failures += 1;
  }

  function attemptOnce(): Promise<void> {
    attempt ??= jump().finally(() => {
      attempt = undefined;
    });
    return attempt;
  }

  return {
    /** @throws SignerError when it cannot be settled now: it stays open, and a jump is tried again and again */
    async settle(doubt: Doubt): Promise<void> {
      open.set(doubt.cause, doubt);
      await note(doubt.cause);
      while (open.has(doubt.cause)) {
        if (again !== undefined && fault !== undefined) throw fault;
        await attemptOnce();
      }
    },
    /** A jump of a caller that asks again by itself: what cannot be settled is forgotten. */
    async settleNow(doubt: Doubt): Promise<StoreIdentity> {
      return jumpTo(await parts.present(), [doubt], parts);
    },
    hindrance(): 'slashing_unavailable' | 'clock_unconfirmed' | undefined {
      if (open.size === 0) return undefined;
      return fault?.reason === 'clock_unconfirmed' ? fault.reason : 'slashing_unavailable';
    },
    /** Since when, and why: for people. */
    get unsettled(): { readonly causes: readonly DoubtCause[]; readonly problem: string | undefined } | undefined {
      return open.size === 0 ? undefined : { causes: [...open.keys()], problem: fault?.hint ?? fault?.message };
    },
    /** Everything up to it is refused by this process, whatever the store says. */
    get floorOfStart(): StoreFloor | null {
      return floorOfStart;
    },
    close(): void {
      isClosed = true;
      clearTimeout(again);
    },
  };
}

/** Another signer, or a person, may have raised the store meanwhile. */
async function endThoseThatAreOver(open: Map<DoubtCause, Doubt>): Promise<void> {
  for (const doubt of [...open.values()]) {
    if ((await doubt.isOver?.()) === true && open.get(doubt.cause) === doubt) open.delete(doubt.cause);
  }
}

/** That only the memory of a process tells. Others are seen again by what the store, or its file, says. */
const REMEMBERED: ReadonlySet<DoubtCause> = new Set<DoubtCause>(['lost_records', 'incarnation']);

/** @param cause undefined: it is settled */
async function noteDoubt(store: DoubtsParts['store'], cause: DoubtCause | undefined): Promise<void> {
  await changeIncarnations(store, (before) =>
    (before.doubt === undefined) === (cause === undefined) ? before : { ...before, doubt: cause },
  );
}

/** The one place that raises a store. */
async function jumpTo(
  floor: StoreFloor,
  doubts: readonly Doubt[],
  { store, onJump, log }: DoubtsParts,
): Promise<StoreIdentity> {
  const raised = await store.jump(floor);
  if (readIncarnations(raised.incarnation).doubt !== undefined) await noteDoubt(store, undefined);
  for (const { cause } of doubts) onJump(cause);
  const facts = Object.assign({}, ...doubts.map(({ facts }) => facts));
  const causes = doubts.map(({ cause }) => cause);
  const why = doubts.map(({ cause }) => WHY[cause]).join('; ');
  const fields = { ...facts, backend: store.name, causes, floor: raised.floor && floorFields(raised.floor) };
  if (causes.every((cause) => cause === 'by_hand')) log.info(fields, RAISED);
  else log.warn(fields, `${why}. ${RAISED}`);
  return raised;
}

export const WHY: Readonly<Record<DoubtCause, string>> = {
  boot: 'an earlier start of this signer may have signed what its tables do not say',
  by_hand: 'it was raised by hand',
  unclean_end:
    'the slashing database was not closed in order: a signer was killed, or an older file was put in its place (or chown ' +
    'or chmod touched it)',
  other_file: 'the slashing database is another file than the one that was used here before',
  late_start: 'the slashing database was closed long ago: it may be an older copy that came back',
  other_server:
    'the slashing database is not the one that was signed over, and commits may be lost (a failover, a promoted standby, a restored backup)',
  incarnation: 'the slashing store is an earlier state of itself: a copy was put in its place while signers used it',
  lost_records: 'the slashing store has lost records that this signer knows of. Find out what happened to it',
  other_store: 'the fleet signed over another slashing store, or an end in order is not known',
};
const RAISED =
  'Everything up to the present is refused, which costs a validator one vote, two at most, and blocks of the next two minutes';
const NOT_RAISED =
  'records may have been lost, and the slashing store could not be raised to the present: nothing is signed until it is';
