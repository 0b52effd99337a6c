// The version stands in two places, because an image must not hold all of package.json.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { VERSION } from '../../signer/api/version.ts';

it('is the one of package.json: change both', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect(VERSION).toBe((JSON.parse(text) as { readonly version: string }).version);
});
