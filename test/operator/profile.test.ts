// Whose profile file is believed. What others may do with one of one's own is in golden/settings.txt.

import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { profilePath } from '../../common/command-line/profile-path.ts';
import { CommandFailure } from '../../operator/exit.ts';
import { readProfile } from '../../operator/profile.ts';
import { lacking } from '../support/needs.ts';

it('a profile that is not there is refused with the names of those that are', () => {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-profile-'));
  const env = { XDG_CONFIG_HOME: folder };
  const path = profilePath(env);
  mkdirSync(dirname(path));
  const adviceOn = (profiles: string): string | undefined => {
    writeFileSync(path, `profiles: ${profiles}\n`, { mode: 0o600 });
    try {
      readProfile('mainnet', env);
      return 'it was found';
    } catch (error) {
      return error instanceof CommandFailure ? error.advice : undefined;
    }
  };
  expect(adviceOn('{ frankfurt: {}, dublin: {} }')).toBe('there are: frankfurt, dublin');
  expect(adviceOn('{ mainet: {} }')).toBe('did you mean mainet?');
  expect(adviceOn('{}')).toMatch(/^write the profile into this file/);
  expect(adviceOn(`{ ${Array.from({ length: 30 }, (_, at) => `p${at}: {}`).join(', ')} }`)).toMatch(/, … \(30\)$/);
  rmSync(folder, { recursive: true });
});

const NOBODY = 65_534;
// Only root can make a file that belongs to another user.
it.skipIf(lacking('root'))('a profile file of another user is not used, even when it holds no token', () => {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-profile-'));
  const env = { XDG_CONFIG_HOME: folder };
  const path = profilePath(env);
  mkdirSync(dirname(path));
  writeFileSync(path, 'profiles: { default: { signer_url: "https://signer.invalid" } }\n', { mode: 0o600 });
  expect(readProfile(undefined, env)?.values).toEqual({ 'signer-url': 'https://signer.invalid' });
  chownSync(path, NOBODY, NOBODY);
  expect(() => readProfile(undefined, env)).toThrow(`${path} belongs to another user (uid ${NOBODY})`);
  rmSync(folder, { recursive: true });
});
