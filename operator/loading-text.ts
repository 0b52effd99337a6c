// How far the first load of a signer's keys is, for people: alone because both `status` and `top` say it.

import { durationText, grouped } from '../common/command-line/progress.ts';
import type { KeysLoading } from '../signer/api/health.ts';

export function loadingText({ done, total, remaining_seconds: seconds }: KeysLoading): string {
  if (total === null) return `${grouped(done)} so far`;
  return `${grouped(done)} of ${grouped(total)}${seconds === null ? '' : `, ${durationText(seconds)} left`}`;
}
