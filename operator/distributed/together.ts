// Requests that come at about the same time and say the same of different keys, as the votes of a slot do: participants
// are asked for all of them at once, as for a batch.

import type { OutgoingHttpHeaders } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { parseJson } from '../../common/formats/parse-json.ts';
import type { Duty } from './duty.ts';

/** Those of which participants take batches (specification/signing.md#batches). */
export const TYPES_TOGETHER: ReadonlySet<unknown> = new Set([
  ...['ATTESTATION', 'AGGREGATION_SLOT', 'RANDAO_REVEAL', 'PAYLOAD_ATTESTATION_MESSAGE'],
  ...['SYNC_COMMITTEE_MESSAGE', 'SYNC_COMMITTEE_SELECTION_PROOF'],
]);
/** A participant takes as many at once, or refuses them all. */
const MAX_TOGETHER = 64;
/** From one question with a message to the next one, while it is under way. */
const SPACING_MS = 5;
/** Ten times a vote. */
const MAX_BODY_BYTES = 8192;

interface OneRequest {
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
  /** Aborted when its client went away. */
  readonly gone: AbortSignal;
}

/** @param gone aborted when all clients of the duties went away */
type CarryOut = (duties: readonly Duty[], gone: AbortSignal) => Promise<void>;

interface Gathered {
  /** By key. */
  readonly duties: Map<string, Duty>;
  readonly clients: AbortSignal[];
  readonly carriedOut: Promise<void>;
  /** When participants were asked, as performance.now(). */
  askedAt: number | undefined;
}

export class Together {
  /** By what they say: the last, until all of its duties have their outcome. */
  readonly #gathered = new Map<string, Gathered>();

  /** @returns the duty for its key, which another request may have brought, with its outcome */
  async carryOut(duty: Duty, { headers, body, gone }: OneRequest, carryOut: CarryOut): Promise<Duty> {
    if (body.length > MAX_BODY_BYTES) return carryOut([duty], gone).then(() => duty);
    const said = `${JSON.stringify(headers)}${body.toString('latin1')}`;
    const last = this.#gathered.get(said);
    const isRoom = last !== undefined && last.askedAt === undefined && last.duties.size < MAX_TOGETHER;
    const { duties, clients, carriedOut } = isRoom ? last : this.#gather(said, last, body, carryOut);
    const { compositeKey } = duty.group;
    const own = duties.get(compositeKey) ?? duty;
    duties.set(compositeKey, own);
    clients.push(gone);
    await carriedOut;
    return own;
  }

  /** When nothing that says the same is under way, they ask at once. */
  #gather(said: string, last: Gathered | undefined, body: Buffer, carryOut: CarryOut): Gathered {
    const duties = new Map<string, Duty>();
    const clients: AbortSignal[] = [];
    const ask = async (): Promise<void> => {
      gathered.askedAt = performance.now();
      const all = [...duties.values()];
      const gone = whenAll(clients);
      if (all.length === 1 || isForBatches(body)) await carryOut(all, gone);
      else await Promise.all(all.map((one) => carryOut([one], gone)));
      if (this.#gathered.get(said) === gathered) this.#gathered.delete(said);
    };
    const waitMs = last === undefined ? 0 : (last.askedAt ?? performance.now()) + SPACING_MS - performance.now();
    const carriedOut = (waitMs > 0 ? sleep(waitMs) : nextTurn()).then(ask);
    const gathered: Gathered = { duties, clients, carriedOut, askedAt: undefined };
    this.#gathered.set(said, gathered);
    return gathered;
  }
}

function isForBatches(body: Buffer): boolean {
  const message = parseJson(body.toString('utf8'));
  const isObject = typeof message === 'object' && message !== null;
  return isObject && 'type' in message && TYPES_TOGETHER.has(message.type);
}

function whenAll(signals: readonly AbortSignal[]): AbortSignal {
  const [first] = signals;
  if (first !== undefined && signals.length === 1) return first;
  const all = new AbortController();
  let left = signals.length;
  const note = (): void => {
    left -= 1;
    if (left === 0) all.abort();
  };
  for (const signal of signals) {
    if (signal.aborted) note();
    else signal.addEventListener('abort', note, { once: true });
  }
  return all.signal;
}
