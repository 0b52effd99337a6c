// One slot on the clock: every request is due at its time whatever the answers before it took, and its latency counts
// from then. So a signer that falls behind shows it, and the load does not wait for it.

import { setTimeout as pause } from 'node:timers/promises';
import { TEST_TOKEN, type TestKey } from '../../../test/support/requests.ts';
import type { RawClient } from '../raw-client.ts';
import type { Duty, Kind } from './duties.ts';

/** Signatures of one request, to be verified afterwards. */
export interface Answered {
  readonly message: Record<string, unknown>;
  readonly keys: readonly TestKey[];
  readonly body: string;
}

export interface SlotResult {
  /** Milliseconds from the time at which it was due, one a signature; infinite: not signed. */
  readonly latencies: Readonly<Record<Kind, readonly number[]>>;
  readonly failures: Readonly<Record<string, number>>;
  readonly answered: readonly Answered[];
  readonly generatorCpuSeconds: number;
}

interface Planned {
  readonly kind: Kind;
  readonly due: number;
  readonly message: Record<string, unknown>;
  readonly body: string;
  readonly keys: readonly TestKey[];
  readonly following: readonly Record<string, unknown>[];
}

/** @param batch keys of a batch; 0: every signature is a request of its own */
export async function runSlot(
  clients: readonly RawClient[],
  duties: readonly Duty[],
  { startsAt, slotMs, batch }: { readonly startsAt: number; readonly slotMs: number; readonly batch: number },
): Promise<SlotResult> {
  const run = new SlotRun(clients, duties, batch);
  const cpuBefore = process.cpuUsage();
  const times = [...new Set(duties.map(({ at }) => at))].toSorted((one, other) => one - other);
  for (const at of times) {
    const due = startsAt + at * slotMs;
    const planned = duties.filter((duty) => duty.at === at).flatMap((duty) => run.plan(duty, due));
    await pause(Math.max(0, due - performance.now()));
    run.enqueue(planned);
  }
  // What is not answered at the end of the slot is waited for: it counts as late, and nothing of it is lost.
  await run.drained();
  const cpu = process.cpuUsage(cpuBefore);
  return run.result((cpu.user + cpu.system) / 1e6);
}

class SlotRun {
  readonly #batch: number;
  readonly #idle: RawClient[];
  readonly #waiting: Planned[] = [];
  #next = 0;
  #open = 0;
  #drained: (() => void) | undefined;
  readonly #latencies: Record<Kind, number[]>;
  readonly #failures: Record<string, number> = {};
  readonly #answered: Answered[] = [];

  constructor(clients: readonly RawClient[], duties: readonly Duty[], batch: number) {
    this.#batch = batch;
    this.#idle = [...clients];
    this.#latencies = Object.fromEntries(duties.map(({ kind }) => [kind, [] as number[]])) as Record<Kind, number[]>;
  }

  plan({ kind, message, keys, isShared, following = [] }: Duty, due: number): Planned[] {
    const text = JSON.stringify(message);
    if (!isShared || this.#batch === 0)
      return keys.map((key) => ({ kind, due, message, body: text, keys: [key], following }));
    return Array.from({ length: Math.ceil(keys.length / this.#batch) }, (_, group) => {
      const share = keys.slice(group * this.#batch, (group + 1) * this.#batch);
      const identifiers = JSON.stringify(share.map(({ publicKey }) => publicKey));
      const body = `{"identifiers":${identifiers},"signing_request":${text}}`;
      return { kind, due, message, body, keys: share, following };
    });
  }

  enqueue(planned: readonly Planned[]): void {
    this.#waiting.push(...planned);
    while (this.#idle.length > 0 && this.#next < this.#waiting.length) this.#sendNext(this.#idle.pop());
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#drained = resolve;
      this.#endIfDrained();
    });
  }

  result(generatorCpuSeconds: number): SlotResult {
    for (const planned of this.#waiting.slice(this.#next)) this.#note(planned, 'never sent', '');
    return {
      latencies: this.#latencies,
      failures: this.#failures,
      answered: this.#answered,
      generatorCpuSeconds,
    };
  }

  #sendNext(client: RawClient | undefined): void {
    const planned = this.#waiting[this.#next];
    if (client === undefined || planned === undefined) {
      if (client !== undefined) this.#idle.push(client);
      this.#endIfDrained();
      return;
    }
    this.#next += 1;
    this.#open += 1;
    client.onAnswer = (status, body) => {
      this.#open -= 1;
      this.#note(planned, status, body);
      if (status === 'closed' || status === 'error')
        this.#endIfDrained(); // the connection is lost, and not used again
      else this.#sendNext(client);
    };
    client.ask(requestOf(planned));
  }

  #note(planned: Planned, status: string, body: string): void {
    const { kind, due, message, keys, following } = planned;
    const latency = status === '200' ? performance.now() - due : Number.POSITIVE_INFINITY;
    for (const _ of keys) this.#latencies[kind].push(latency);
    if (status !== '200') {
      const why = `${status} ${/"reason":"(\w+)"/.exec(body)?.[1] ?? ''}`.trim();
      this.#failures[why] = (this.#failures[why] ?? 0) + 1;
      return;
    }
    this.#answered.push({ message, keys, body });
    const [then, ...rest] = following;
    if (then === undefined) return;
    const next = {
      ...planned,
      due: performance.now(),
      message: then,
      body: JSON.stringify(then),
      following: rest,
    };
    this.#waiting.push(next);
    const idle = this.#idle.pop();
    if (idle !== undefined) this.#sendNext(idle);
  }

  #endIfDrained(): void {
    if (this.#open > 0) return;
    const hasLostAllConnections = this.#idle.length === 0;
    if (this.#next === this.#waiting.length || hasLostAllConnections) this.#drained?.();
  }
}

function requestOf({ keys, body }: Planned): Buffer {
  const isBatch = body.startsWith('{"identifiers"');
  const path = isBatch ? '' : `/${keys[0]?.publicKey}`;
  return Buffer.from(
    `POST /api/v1/eth2/sign${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${TEST_TOKEN}\r\n` +
      `Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
}
