// What Prometheus reads of a combiner (specification/operating.md#combiner). Participants have their names of the file.

import type { Participant } from './participants.ts';

const OUTCOMES = ['signed', 'refused', 'failed'] as const;
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4] as const;

/** Until as many partial signatures as the threshold are there. */
export class ThresholdTimes {
  readonly #counts = new Map<number, number>([...BOUNDS, Number.POSITIVE_INFINITY].map((bound) => [bound, 0]));
  #sum = 0;

  note(seconds: number): void {
    this.#sum += seconds;
    for (const [bound, count] of this.#counts) if (seconds <= bound) this.#counts.set(bound, count + 1);
  }

  samples(): readonly string[] {
    const named = [...this.#counts].map(([bound, count]) => [Number.isFinite(bound) ? bound : '+Inf', count]);
    const count = this.#counts.get(Number.POSITIVE_INFINITY);
    return [
      ...named.map(([bound, least]) => `_bucket{le="${bound}"} ${least}`),
      `_sum ${this.#sum}`,
      `_count ${count}`,
    ];
  }
}

interface Measured {
  readonly participants: readonly Participant[];
  readonly times: ThresholdTimes;
  readonly verifier: { readonly checks: number; readonly signatures: number };
  readonly keys: number;
}

export function metricsText({ participants, times, verifier, keys }: Measured): string {
  const named = participants.map(({ name, counts }) => ({ label: `participant=${JSON.stringify(name)}`, counts }));
  const answers = named.flatMap(({ label, counts }) =>
    OUTCOMES.map((outcome) => `{${label},outcome="${outcome}"} ${counts[outcome]}`),
  );
  const wrong = named.map(({ label, counts }) => `{${label}} ${counts.wrong}`);
  return [
    family('answers_total', 'counter', 'Answers of participants to requests for partial signatures.', answers),
    family('wrong_partials_total', 'counter', 'Partial signatures that were wrong.', wrong),
    family('threshold_seconds', 'histogram', 'Time until enough partial signatures were there.', times.samples()),
    family('signatures_total', 'counter', 'Signatures that were verified.', [` ${verifier.signatures}`]),
    family('checks_total', 'counter', 'Verifications, of many signatures or of one.', [` ${verifier.checks}`]),
    family('keys', 'gauge', 'Keys of which enough participants hold a share.', [` ${keys}`]),
  ].join('');
}

function family(name: string, type: string, help: string, samples: readonly string[]): string {
  const full = `svc_combiner_${name}`;
  return `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${samples.map((sample) => `${full}${sample}\n`).join('')}`;
}
