// How far the first load of a signer's keys is, for people: alone because both `status` and `top` say it.

import { durationText, groupedThousands } from '../common/command-line/progress.ts';
import type { KeysLoading } from '../signer/api/health.ts';

export function loadingText({ done, total, remaining_seconds: seconds }: KeysLoading): string {
  if (total === null) return `${groupedThousands(done)} so far`;
  return `${groupedThousands(done)} of ${groupedThousands(total)}${seconds === null ? '' : `, ${durationText(seconds)} left`}`;
}
