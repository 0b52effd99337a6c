// Whose profile file is believed. What others may do with one of one's own is in golden/settings.txt.

import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { profilePath, readProfile } from '../../operator/profile.ts';

const NOBODY = 65_534;
const IS_ROOT = process.getuid?.() === 0;
if (!IS_ROOT) console.warn('SKIPPED: only root can make a profile file that belongs to somebody else');

it.skipIf(!IS_ROOT)('a profile file of another user is not used, even when it holds no token', () => {
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
