// What an image's command line says that no image for Nitro says.

import { expect, it } from 'vitest';
import { testOnlyStatements } from '../../eif/commands/describe.ts';

it('an image for Nitro states nothing', () => {
  for (const cmdline of ['reboot=k panic=30 console=ttyS0', 'strongroom.parent_cid=3', 'x.strongroom.parent_cid=2', ''])
    expect(testOnlyStatements(cmdline)).toEqual([]);
});

it('another parent and unsigned evidence are named, wherever the words stand', () => {
  expect(testOnlyStatements('strongroom.evidence=unsigned quiet strongroom.parent_cid=2')).toEqual([
    'its parent is CID 2, not 3',
    'its evidence is unsigned: no client and no key policy believes it',
  ]);
});
