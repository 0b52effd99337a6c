// The limits of a key route: what it says when its time is over (never that nothing was done), and that no work,
// however it ends, keeps its place or its timer.

import { describe, expect, it } from 'vitest';
import { limitWork } from '../../signer/http/work-limits.ts';

it('work that takes too long is answered with what may be done already, and with what to do', async () => {
  const work = limitWork({ maxConcurrentRequests: 1, requestTimeoutSeconds: 0.001 });
  const aborted = Promise.withResolvers<never>();
  const answer = work((signal) => {
    signal.addEventListener('abort', () => aborted.reject(signal.reason));
    return aborted.promise;
  });
  await expect(answer).rejects.toMatchObject({
    reason: 'request_timeout',
    message: expect.stringMatching(/^the request was not finished in time: a part of it may be done.*list the keys/),
  });
  await expect(answer).rejects.not.toMatchObject({ message: expect.stringContaining('nothing was signed') });
});

describe.each([
  {
    how: 'throws at once',
    work: (): Promise<never> => {
      throw new Error('at once');
    },
  },
  { how: 'rejects', work: (): Promise<never> => Promise.reject(new Error('at once')) },
])('work that $how', ({ work: failing }) => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

  it('gives its place back, and leaves no timer that would end the process later', async () => {
    const work = limitWork({ maxConcurrentRequests: 1, requestTimeoutSeconds: 3600 });
    const before = timers();
    for (let round = 0; round < 20; round += 1) await expect(work(failing)).rejects.toThrow('at once');
    expect(timers()).toBe(before);
    await expect(work(() => Promise.resolve('done'))).resolves.toBe('done');
  });
});
