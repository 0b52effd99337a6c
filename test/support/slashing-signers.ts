// Signers in processes of their own that can be killed at any moment. What a signer was asked when it died has no
// answer: nobody got a signature for it.

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { tracked } from '../../rehearsal/signer.ts';
import type { SlashableMessage } from '../../signer/slashing/types.ts';
import type { SignerAnswer, SignerRequest, SignerStore } from './slashing-signer-process.ts';

export interface SignerProcess {
  /** `safe`, the reason why not, or `died`. */
  ask(message: SlashableMessage): Promise<string>;
  /** SIGKILL, in the middle of whatever it does; resolves when it is gone. */
  kill(): Promise<void>;
}

const PROGRAM = fileURLToPath(new URL('./slashing-signer-process.ts', import.meta.url));

export async function startSigner(store: SignerStore): Promise<SignerProcess> {
  const child = tracked(fork(PROGRAM, [JSON.stringify(store)], { serialization: 'advanced', execArgv: [] }));
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const waiting = new Map<number, (outcome: string) => void>();
  let lastId = 0;
  await ready(child);

  child.on('message', ({ id, outcome }: SignerAnswer) => {
    waiting.get(id)?.(outcome);
    waiting.delete(id);
  });
  child.once('disconnect', () => {
    for (const settle of waiting.values()) settle('died');
    waiting.clear();
  });
  return {
    ask(message) {
      if (!child.connected) return Promise.resolve('died');
      lastId += 1;
      const id = lastId;
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        // A signer that dies under our hands is told by `disconnect`.
        child.send({ id, message } satisfies SignerRequest, () => undefined);
      });
    },
    async kill() {
      child.kill('SIGKILL');
      await gone;
    },
  };
}

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`a signer ended at its start with code ${code}`)));
  });
}
