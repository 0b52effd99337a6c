// The reader of comments, on which the tests of citations and of line widths stand.

import { describe, expect, it } from 'vitest';
import { commentsIn } from './comments.ts';

describe('the reader of comments', () => {
  it('takes lines that follow each other for one, and a docstring for another', () => {
    const text = '// One\n// comment.\n/** Another. */\nconst a = 1; // a third\n';
    expect(commentsIn('service/main.ts', text).map(({ line, text }) => [line, text])).toEqual([
      [1, 'One\ncomment.'],
      [3, 'Another.'],
      [4, 'a third'],
    ]);
  });

  it('reads those of scripts, and not their first line', () => {
    const text = '#!/bin/sh\n# One.\nset -eu # another\necho "# none"\n';
    expect(commentsIn('bin/pinned-node', text).map(({ text }) => text)).toEqual(['One.', 'another']);
  });
});
