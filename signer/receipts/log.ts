// The log of one boot's decisions (specification/receipts.md#log): on the path to the answer an entry becomes bytes of
// a bundle; the tree, the heads and their storage are apart from it. The caller passes only decisions that were made.
// It never states two heads of one sequence: until a signed head is stored, no later one is signed.

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { oneAfterTheOther } from '../../common/flow/turns.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { ReceiptEntry } from '../../common/receipts/entry.ts';
import {
  digestOfHead,
  type HeadStatement,
  headText,
  type LogHead,
  MAX_NAMED_HEADS,
  type ReadHead,
  readHead,
  signedHead,
} from '../../common/receipts/head.ts';
import {
  type BootIdentity,
  bootOf,
  encodeIdentity,
  identityBinding,
  type LogKind,
} from '../../common/receipts/identity.ts';
import { CHECKPOINT, EntryBundle, headPath, IDENTITY, PARTIAL } from '../../common/receipts/tiles.ts';
import { TILE_WIDTH } from '../../common/receipts/tree.ts';
import { type FullFile, Growth, type PartialFile } from './growth.ts';
import type { ReceiptStorage } from './storage.ts';

/** A head is begun each interval, and the storage has one more to take it: then the log counts as not kept. */
const MOST_INTERVALS = 2;
/** What no kept head covers is not more than the decisions of so long, unless signatures wait for the log. */
const MOST_SECONDS = 3600;
/** Written together, and at once when so many wait: the entries of 8,192 decisions. */
const GROUP_FILES = 32;

/** What a head says of the signer besides its log. */
export type SignerFacts = Pick<HeadStatement, 'slashing' | 'latch' | 'auth_revision'>;

export interface ReceiptLogOptions {
  readonly intervalSeconds: number;
  /** Entries that wait for the storage; decisions beyond are counted as lost. At most 320 bytes each. */
  readonly maxWaitingEntries: number;
  /** `receipts.required`: nothing is signed without room, so no decision is lost. */
  readonly required: boolean;
  /** What heads say of entries that are removed (retention.ts); null: none are. */
  readonly retentionDays: number | null;
}

export interface ReceiptLogParts {
  readonly genesisValidatorsRoot: string;
  /** A document with this user_data; undefined in a plain service. */
  readonly attest: ((userData: Buffer) => Promise<Buffer>) | undefined;
  readonly storage: ReceiptStorage;
  readonly facts: () => SignerFacts;
  readonly clock: Clock;
  readonly log: Log;
}

/** Signed, and the next one that is kept. */
interface PendingHead {
  readonly head: LogHead;
  readonly begunAtMs: number;
  readonly note: string;
  /** Of the tiles that were not full, as the head covers them. */
  readonly partials: readonly PartialFile[];
}

/** Open with openReceiptLog(); then keepHead() each interval, and close(). */
export class ReceiptLog {
  readonly boot: string;
  #identity: BootIdentity;
  #isIdentified = false;
  readonly #key: KeyObject;
  readonly #parts: ReceiptLogParts;
  readonly #options: ReceiptLogOptions;
  readonly #growth = new Growth((file) => this.#fileIsFull(file));
  /** Of the tile that is not full yet. */
  #bundle = new EntryBundle();
  /** Written, to be filled again: fresh memory would cost the main thread more than all hashes do. */
  readonly #spare: EntryBundle[] = [];
  #size = 0;
  /** Entries in full tiles that the storage has. */
  #stored = 0;
  #files: FullFile[] = [];
  /** How many files wait when they are next written without a head. */
  #writeAt = GROUP_FILES;
  /** Kept of tiles that are not full: a full one replaces them. */
  readonly #partials = new Set<string>();
  #lost = 0;
  #sequence = 0;
  #previous: string | null = null;
  #lastTimeMs = 0;
  #pending: PendingHead | undefined;
  #latest: string | undefined;
  #keptAtMs: number | undefined;
  /** Decisions since then are in no kept head; before the first one, since the start. */
  #coveredAtMs: number;
  #covered = 0;
  #isClosed = false;
  /** What goes to the storage goes there one after the other. */
  readonly #inTurn = oneAfterTheOther();

  constructor(identity: BootIdentity, key: KeyObject, options: ReceiptLogOptions, parts: ReceiptLogParts) {
    this.#identity = identity;
    this.boot = bootOf(identity.publicKey);
    this.#key = key;
    this.#options = options;
    this.#parts = parts;
    this.#coveredAtMs = parts.clock.monotonic();
  }

  get kind(): LogKind {
    return this.#identity.kind;
  }

  get size(): number {
    return this.#size;
  }

  get lost(): number {
    return this.#lost;
  }

  /** Entries in memory: those that wait, and those of the tile that is not full. */
  get entriesInMemory(): number {
    return this.#size - this.#stored;
  }

  /** The latest head that is kept, as a note. */
  get latestHead(): string | undefined {
    return this.#latest;
  }

  /** Seconds since a head was kept; infinite before the first. */
  get headAgeSeconds(): number {
    if (this.#keptAtMs === undefined) return Number.POSITIVE_INFINITY;
    return (this.#parts.clock.monotonic() - this.#keptAtMs) / 1000;
  }

  /** Entries that no kept head covers, and since when: a kill would take these. */
  get uncovered(): { readonly entries: number; readonly seconds: number } {
    const seconds = (this.#parts.clock.monotonic() - this.#coveredAtMs) / 1000;
    return { entries: this.#size - this.#covered, seconds };
  }

  /** Whether kept heads cover all but the last intervals, and there is room: what `receipts.required` asks. */
  get isKept(): boolean {
    const hasRoom = this.entriesInMemory < this.#options.maxWaitingEntries;
    const isOfLate = this.uncovered.seconds <= this.#options.intervalSeconds * MOST_INTERVALS;
    return hasRoom && this.#latest !== undefined && isOfLate;
  }

  /**
   * Log a decision. It waits for nothing and never throws for the storage. A log that is required keeps it without room
   * too: nothing is begun then, so only what was under way comes here.
   * @returns whether there was room
   */
  record(entry: Omit<ReceiptEntry, 'timeMs'>): boolean {
    const isLate = this.#parts.clock.monotonic() - this.#coveredAtMs > MOST_SECONDS * 1000;
    const isFull = !this.#options.required && (isLate || this.entriesInMemory >= this.#options.maxWaitingEntries);
    if (this.#isClosed || isFull) {
      this.#lost += 1;
      return false;
    }
    this.#bundle.write(entry, this.#parts.clock.now());
    this.#size += 1;
    if (this.#bundle.count === TILE_WIDTH) {
      this.#growth.append(this.#bundle);
      this.#bundle = this.#spare.pop() ?? new EntryBundle();
    }
    return true;
  }

  /** Make a head and keep it with all that it covers, behind one that could not be kept. @returns whether it is kept */
  keepHead(): Promise<boolean> {
    return this.#inTurn(() => this.#keep(false));
  }

  /** The last head of this boot; nothing is logged after it. */
  close(): Promise<boolean> {
    return this.#inTurn(async () => {
      this.#isClosed = true;
      return await this.#keep(true);
    });
  }

  /** @param before what the first head names */
  async begin(before: NonNullable<HeadStatement['before']>): Promise<void> {
    this.#pending = this.#sign(before, false);
    await this.keepHead();
  }

  async #keep(isLast: boolean): Promise<boolean> {
    try {
      if (this.#pending !== undefined) {
        const { head } = this.#pending;
        await this.#keepPending(this.#pending);
        if (head.statement.sequence === 0 && !isLast) return true;
      }
      this.#pending = this.#sign(null, isLast);
      await this.#keepPending(this.#pending);
      return true;
    } catch (error) {
      this.#parts.log.warn({ err: error, waiting_entries: this.entriesInMemory }, 'receipts: the log is not kept');
      return false;
    }
  }

  /** A security module that does not attest now is asked again with the next head; until then no head is kept. */
  async #identify(): Promise<void> {
    if (this.#isIdentified) return;
    const document = await this.#parts.attest?.(identityBinding(this.#identity));
    if (document !== undefined) this.#identity = { ...this.#identity, document };
    const content = Buffer.from(`${encodeIdentity(this.#identity)}\n`);
    this.#files.unshift({ path: IDENTITY, content, bundle: null });
    this.#isIdentified = true;
  }

  /** Tiles first: a head that is kept has all that it covers. */
  async #keepPending({ head, begunAtMs, note, partials }: PendingHead): Promise<void> {
    const { storage } = this.#parts;
    await this.#identify();
    while (this.#files.length > 0) await this.#writeGroup();
    const content = Buffer.from(note);
    const files = partials.filter(({ fullAt }) => fullAt > this.#growth.size);
    await storage.write(this.boot, files);
    for (const { path } of files) this.#partials.add(path);
    await storage.write(this.boot, [{ path: headPath(head.statement.sequence), content }]);
    await storage.write(this.boot, [{ path: CHECKPOINT, content }]);
    this.#pending = undefined;
    this.#latest = note;
    this.#keptAtMs = this.#parts.clock.monotonic();
    [this.#coveredAtMs, this.#covered] = [begunAtMs, head.size];
  }

  async #writeGroup(): Promise<void> {
    const { storage } = this.#parts;
    const files = this.#files.slice(0, GROUP_FILES);
    await storage.write(this.boot, files);
    this.#files = this.#files.slice(files.length);
    for (const { bundle } of files) if (bundle !== null) this.#recycle(bundle);
    const full = new Set(files.map(({ path }) => path));
    const replaced = [...this.#partials].filter((path) => full.has(path.slice(0, path.indexOf(PARTIAL))));
    for (const path of replaced) this.#partials.delete(path);
    // Files that cannot be removed do no harm.
    await storage.remove(this.boot, replaced).catch(() => undefined);
  }

  #recycle(bundle: EntryBundle): void {
    this.#stored += bundle.count;
    bundle.clear();
    if (this.#spare.length < GROUP_FILES) this.#spare.push(bundle);
  }

  #fileIsFull(file: FullFile): void {
    this.#files.push(file);
    if (this.#files.length < this.#writeAt) return;
    // One that fails is tried again when as many more wait, or with the next head, which says so.
    this.#writeAt = this.#files.length + GROUP_FILES;
    void this.#inTurn(() => this.#writeGroup()).then(
      () => {
        this.#writeAt = GROUP_FILES;
      },
      () => undefined,
    );
  }

  /** What a head states is what was there when this is called: decisions that come meanwhile are of the next one. */
  #sign(before: HeadStatement['before'], closed: boolean): PendingHead {
    // Heads do not go back, whatever the clock does.
    const time = Math.max(this.#lastTimeMs, this.#parts.clock.now());
    const begunAtMs = this.#parts.clock.monotonic();
    const facts = this.#parts.facts();
    const lost = this.#lost;
    const { size, root, partials } = this.#growth.tree(Buffer.from(this.#bundle.bytes));
    const { kind } = this.#identity;
    const own = { sequence: this.#sequence, time, previous: this.#previous, before, lost, closed };
    const statement = { ...own, ...facts, retention_days: this.#options.retentionDays };
    const head: LogHead = { kind, boot: this.boot, size, root, statement };
    const text = headText(head);
    this.#sequence += 1;
    this.#previous = digestOfHead(text);
    this.#lastTimeMs = time;
    const note = signedHead(head, this.#identity, sign(null, Buffer.from(text), this.#key));
    return { head, begunAtMs, note, partials };
  }
}

/**
 * Make the key of this boot, and keep its first head. A storage that does not answer, and a security module that does
 * not attest, stop nothing: the log is not kept until they do.
 */
export async function openReceiptLog(options: ReceiptLogOptions, parts: ReceiptLogParts): Promise<ReceiptLog> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const publicKey = Buffer.from(privateKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const { genesisValidatorsRoot, attest } = parts;
  const kind = attest === undefined ? 'unattested' : 'attested';
  const identity: BootIdentity = { kind, publicKey, genesisValidatorsRoot, document: null };
  const log = new ReceiptLog(identity, privateKey, options, parts);
  await log.begin(await namedHeads(parts));
  return log;
}

async function namedHeads({ storage, log }: ReceiptLogParts): Promise<NonNullable<HeadStatement['before']>> {
  try {
    const boots = (await storage.boots()).slice(0, MAX_NAMED_HEADS);
    const heads = await Promise.all(boots.map((boot) => lastHead(storage, boot)));
    return { heads: heads.map(({ digest }) => digest).toSorted(), gap: null }; // each of its own boot, so no two alike
  } catch (error) {
    log.warn({ err: error }, 'receipts: the heads of earlier starts cannot be read; the first head says so');
    return { heads: [], gap: 'unreadable' };
  }
}

/** The checkpoint, or the head behind it: a process that was killed between the two wrote only that. */
async function lastHead(storage: ReceiptStorage, boot: string): Promise<ReadHead> {
  const headAt = async (path: string): Promise<ReadHead | undefined> =>
    readHead((await storage.read(boot, path))?.toString('utf8') ?? '');
  const checkpoint = await headAt(CHECKPOINT);
  if (checkpoint?.boot !== boot) {
    throw new Error(`the checkpoint of the boot ${boot} is no head of its log of receipts`);
  }
  const next = await headAt(headPath(checkpoint.statement.sequence + 1));
  return next?.boot === boot ? next : checkpoint;
}
