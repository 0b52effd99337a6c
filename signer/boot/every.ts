// What a running signer does again and again, until it shuts down.

/**
 * One at a time: what hangs gets no second one meanwhile. @param work never rejects
 * @returns does it now, too
 */
export function every(intervalMs: number, work: () => Promise<unknown>, opened: AsyncDisposableStack): () => void {
  let isBusy = false;
  const run = (): void => {
    if (isBusy) return;
    isBusy = true;
    void work().then(() => {
      isBusy = false;
    });
  };
  const timer = setInterval(run, intervalMs);
  timer.unref();
  opened.defer(() => clearInterval(timer));
  return run;
}
