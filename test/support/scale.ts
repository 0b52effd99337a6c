// How large the long tests are: seeds of models, rounds of kills and races, releases, keys. `make test` runs each of
// them at a small size; TEST_SCALE=1 is the whole size, which `make test-all` and CI run, and TEST_SCALE=20 is twenty
// times that, for a search by hand. The suite is the same at every size: no test is left out.

const SCALE = readScale(process.env['TEST_SCALE']);

export const IS_WHOLE = SCALE !== undefined;

/** @returns `small`, or `whole` times TEST_SCALE where that is given */
export function sized(small: number, whole: number): number {
  return SCALE === undefined ? small : Math.ceil(whole * SCALE);
}

/** @returns so many of the cases, spread over the list; all of them at the whole size, unless `whole` says how many */
export function someOf<T>(cases: readonly T[], small: number, whole = Number.POSITIVE_INFINITY): readonly T[] {
  const count = sized(small, whole);
  if (count >= cases.length) return cases;
  return cases.filter(
    (_, index) => Math.floor((index * count) / cases.length) !== Math.floor(((index - 1) * count) / cases.length),
  );
}

function readScale(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const scale = Number(text);
  if (!(scale > 0 && scale <= 100_000)) throw new Error(`TEST_SCALE is ${text}; it is a number above 0, as 1 or 20`);
  return scale;
}

/** One mutant of so many is tried. The programs that try them read TEST_SCALE themselves. */
export const MUTANTS_EVERY = IS_WHOLE ? 1 : 10;

/** What such a program is told. */
export const SCALE_ENVIRONMENT: Readonly<Record<string, string>> = IS_WHOLE ? { TEST_SCALE: String(SCALE) } : {};

/** TEST_SEED, with which a failed search is run again, or this one. */
export function testSeed(otherwise: number): number {
  const text = process.env['TEST_SEED'] ?? '';
  return text === '' ? otherwise : Number(text);
}
