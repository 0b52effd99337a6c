// How comments begin: with what they speak of, so that nobody has to look for it in the code below. A comment that
// begins with "Of" leaves that out.

import { describe, expect, it } from 'vitest';
import { type Comment, commentsIn, commentsOfAll } from './comments.ts';

/** Each problem says where it is, and what to do. */
function problemsOf({ file, line, text }: Comment): string[] {
  return /^Of\b/.test(text.trimStart()) ? [`${file}:${line} begins with "Of": begin with the subject`] : [];
}

describe('comments', () => {
  it('begin with their subject', () => {
    const comments = commentsOfAll();
    expect(comments.length).toBeGreaterThan(5000);
    expect(comments.flatMap(problemsOf)).toEqual([]);
  });

  it.each([
    ['/** Of the process. */', 1],
    ['/**\n * Of the process, and of\n * its children.\n */', 1],
    ['// Of this thread alone.', 1],
    ['const count = 1; // Of them.', 1],
    ['/** CPU time of the process. */', 0],
    ['// Often.', 0],
    ["const text = '// Of nothing';", 0],
  ])('%j', (text, count) => {
    expect(commentsIn('enclave/main.ts', text).flatMap(problemsOf)).toHaveLength(count);
  });
});

describe('the reader of comments', () => {
  it('takes lines that follow each other for one, and a docstring for another', () => {
    const text = '// One\n// comment.\n/** Another. */\nconst a = 1; // a third\n';
    expect(commentsIn('enclave/main.ts', text).map(({ line, text }) => [line, text])).toEqual([
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
