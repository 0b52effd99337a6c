// One participant, as the combiner asks it: over kept connections of operator/connect.ts, so many at once and so many
// that wait for one. It remembers how the participant answers, so that the combiner asks the good and quick ones first.

import { type Agent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { keptConnections, readBytes } from '../client.ts';
import type { Peer } from '../connect.ts';
import { authorizationHeader } from '../token.ts';

export interface ParticipantSettings {
  readonly name: string;
  readonly peer: Peer;
  readonly token: string;
}

interface ParticipantLimits {
  readonly maxConnections: number;
  readonly maxWaiting: number;
  readonly log: (line: string) => void;
}

export interface Sent {
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
}

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

/** How long a participant that lied is asked last. */
const DISTRUST_MS = 300_000;
/** And one that could not sign, unless it signs or refuses meanwhile. */
const FAILING_MS = 60_000;
const MS_BETWEEN_LINES = 60_000;
const SMOOTHING = 0.2;

export class Participant {
  readonly name: string;
  /** When its last good list of shares was asked for (accounts.ts). */
  listedAt = Number.NEGATIVE_INFINITY;
  readonly counts = { signed: 0, refused: 0, failed: 0, wrong: 0 };
  readonly #settings: ParticipantSettings;
  readonly #limits: ParticipantLimits;
  readonly #agent: Agent;
  /** When each began that has not ended, the oldest first. */
  readonly #asked = new Set<{ readonly began: number }>();
  readonly #waiting: (() => void)[] = [];
  #active = 0;
  #usualMs = 0;
  #failingUntil = 0;
  #distrustedUntil = 0;
  #nextLineAt = { wrong: 0, failing: 0 };

  constructor(settings: ParticipantSettings, limits: ParticipantLimits, ended: AbortSignal) {
    this.name = settings.name;
    this.#settings = settings;
    this.#limits = limits;
    this.#agent = keptConnections(settings.peer, ended);
  }

  get isDistrusted(): boolean {
    return performance.now() < this.#distrustedUntil;
  }

  /** It neither signed nor refused when it was asked. */
  get isFailing(): boolean {
    return performance.now() < this.#failingUntil;
  }

  /** The least is asked first: those that lied never recently, then those that answer, then the quickest. */
  reluctance(): number {
    const [oldest] = this.#asked;
    const slownessMs = Math.max(this.#usualMs, oldest === undefined ? 0 : performance.now() - oldest.began);
    return (this.isDistrusted ? 2e9 : 0) + (this.isFailing ? 1e9 : 0) + slownessMs;
  }

  noteWrong(): void {
    this.counts.wrong += 1;
    this.#distrustedUntil = performance.now() + DISTRUST_MS;
    this.#say('wrong', `gave a wrong partial signature (${this.counts.wrong} so far): it is asked last`);
  }

  /** @param problem why it neither signs nor refuses; undefined when it does one of them */
  noteSigning(problem: string | undefined): void {
    this.#failingUntil = problem === undefined ? 0 : performance.now() + FAILING_MS;
    if (problem !== undefined) this.#say('failing', `does not sign (${problem}): it is asked late`);
  }

  #say(about: 'wrong' | 'failing', line: string): void {
    const now = performance.now();
    if (now < this.#nextLineAt[about]) return;
    this.#nextLineAt[about] = now + MS_BETWEEN_LINES;
    this.#limits.log(`participant ${this.name} ${line}`);
  }

  /** @throws when no whole answer comes until the signal */
  async ask(path: string, sent: Sent | undefined, maxBytes: number, signal: AbortSignal): Promise<Answer> {
    const mark = { began: performance.now() };
    const { maxConnections, maxWaiting } = this.#limits;
    if (this.#asked.size >= maxConnections + maxWaiting) throw new Error('as much is asked of it as may be');
    this.#asked.add(mark);
    if (this.#active >= maxConnections) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    else this.#active += 1;
    try {
      const answer = await this.#exchange(path, sent, maxBytes, signal);
      this.#usualMs += SMOOTHING * (performance.now() - mark.began - this.#usualMs);
      return answer;
    } finally {
      this.#asked.delete(mark);
      const next = this.#waiting.shift();
      if (next === undefined) this.#active -= 1;
      else next();
    }
  }

  async #exchange(path: string, sent: Sent | undefined, maxBytes: number, signal: AbortSignal): Promise<Answer> {
    const { peer, token } = this.#settings;
    const outgoing = httpRequest({
      ...{ agent: this.#agent, path, signal, method: sent === undefined ? 'GET' : 'POST' },
      headers: {
        ...{ ...sent?.headers, accept: 'application/json', host: peer.url.host },
        authorization: authorizationHeader(token),
        ...(sent === undefined ? {} : { 'content-length': sent.body.length }),
      },
    });
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    outgoing.once('response', resolve).on('error', reject);
    // Without an error, when the answer is 101: nothing else would end the wait.
    outgoing.once('close', () => reject(new Error('it ended the connection without an answer')));
    outgoing.end(sent?.body);
    const response = await promise;
    return { status: response.statusCode ?? 0, body: await readBytes(response, maxBytes) };
  }
}
