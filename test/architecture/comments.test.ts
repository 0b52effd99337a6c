// The reader of comments, on which the tests of citations and of line widths stand; and the words that comments of the
// product do without. A sentence with one of them leaves out who acts: "whoever reads it" is the client, the operator,
// the next start or the thread, and a newcomer cannot know which.

import { describe, expect, it } from 'vitest';
import { commentsIn, commentsOfAll } from './comments.ts';

const PRODUCT = /^(?:signer|service|enclave|parent-proxy|operator|ceremony|eif|common|setup|rehearsal|bin)\//;
const WITHOUT_AN_ACTOR = /\b(?:whoever|somebody|nobody|anew|beside)\b/i;

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

describe('the comments of the product', () => {
  const comments = commentsOfAll().filter(({ file }) => PRODUCT.test(file));

  it('are read in every language of it', () => {
    const endings = new Set(comments.map(({ file }) => file.replace(/^.*[./]/, '')));
    expect([...endings]).toEqual(expect.arrayContaining(['ts', 'c', 'h', 'mk', 'nft', 'strongroom']));
  });

  it('name who acts', () => {
    const nameless = comments.filter(({ text }) => WITHOUT_AN_ACTOR.test(text));
    expect(nameless.map(({ file, line, text }) => `${file}:${line} ${text}`)).toEqual([]);
  });
});
