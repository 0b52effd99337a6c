// What a key route says when its time is over: never that nothing was done.

import { expect, it } from 'vitest';
import { limitWork } from '../../enclave/http/work-limits.ts';

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
