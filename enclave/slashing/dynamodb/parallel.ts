// Work on many items in bounded parallel. All that has begun ends before a failure is reported: nothing goes on behind
// the caller's back.

export async function inParallel<Element>(
  list: readonly Element[],
  atOnce: number,
  work: (element: Element) => Promise<void>,
): Promise<void> {
  const elements = list.values();
  let failure: { readonly error: unknown } | undefined;
  const workers = Array.from({ length: Math.min(atOnce, list.length) }, async () => {
    for (const element of elements) {
      if (failure !== undefined) return;
      await work(element).catch((error: unknown) => {
        failure ??= { error };
      });
    }
  });
  await Promise.all(workers);
  if (failure !== undefined) throw failure.error;
}
