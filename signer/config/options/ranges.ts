// Ranges that options of several sections share.

import { integer } from '../values/values.ts';

/** Days, for intervals and timeouts that only need some end. */
export const DAY = 86_400;
export const SECONDS = integer(1, DAY);
export const SECONDS_OR_OFF = integer(0, DAY);
export const CONCURRENCY = integer(1, 1024);
