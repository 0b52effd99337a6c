// SIGHUP before the signer serves: its configuration was read when the start began, so what was revoked since has to
// be read once more.

import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { reloadOnHangUps } from '../../service/reload.ts';
import { recordingLog } from '../support/recording-log.ts';

function world() {
  const signals = new EventEmitter();
  let reloads = 0;
  const signer = {
    reload(): void {
      reloads += 1;
    },
  };
  const hangUps = reloadOnHangUps(signals, recordingLog());
  return { signals, hangUps, signer, reloads: () => reloads };
}

it('a hang-up during the start is not lost: the signer reads again when it serves', () => {
  const { signals, hangUps, signer, reloads } = world();
  signals.emit('SIGHUP');
  signals.emit('SIGHUP');
  expect(reloads()).toBe(0);
  hangUps.serve(signer);
  expect(reloads()).toBe(1);
});

it('without one nothing is read again, and later ones reload at once', () => {
  const { signals, hangUps, signer, reloads } = world();
  hangUps.serve(signer);
  expect(reloads()).toBe(0);
  signals.emit('SIGHUP');
  signals.emit('SIGHUP');
  expect(reloads()).toBe(2);
});
