// A comment that names a file names one that is there, so that a reader finds it: by its path from the folder of the
// comment, or from a folder above that one, up to the root. Documents have a test of their own, which
// looks at their sections too (citations.test.ts).

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Comment, commentsIn, commentsOfAll } from './comments.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMED = /(?<![\w/.:@*<>{}$-])((?:\.{1,2}\/)*[\w-]+(?:[./][\w-]+)*\.(?:ts|c|h|md|mk|sh))(?![\w/-]|\.\w)/g;
/** Sources of Linux, the C library, QEMU and blst, and one name that stands for any. */
const NOT_OURS = new Set([
  ...['asm/unistd.h', 'init/initramfs.c', 'linux/drivers/misc/nsm.c', 'linux/include/uapi/linux/nsm.h'],
  ...['linux/magic.h', 'sys/socket.h', 'hw/virtio/virtio-nsm.c', 'blst.h', 'build.sh', './x-worker.ts'],
]);

/** Without URLs, whose paths are of others. */
function namesIn({ text }: Comment): string[] {
  return [...text.replaceAll(/https?:\/\/\S+/g, '').matchAll(NAMED)].map(([, name = '']) => name);
}

function foldersOf(file: string): string[] {
  const folder = dirname(file);
  return folder === '.' ? ['.'] : [folder, ...foldersOf(folder)];
}

function isThere(file: string, name: string): boolean {
  const places = foldersOf(file);
  if (name.endsWith('.md')) places.push('docs');
  return NOT_OURS.has(name) || places.some((place) => existsSync(join(ROOT, place, name)));
}

/** Each problem says where it is, and what to do. */
function problemsOf(comment: Comment): string[] {
  const missing = namesIn(comment).filter((name) => !isThere(comment.file, name));
  return missing.map(
    (name) => `${comment.file}:${comment.line} names ${name}: correct it, from a folder above the file`,
  );
}

describe('files that comments name', () => {
  it('are there', () => {
    const comments = commentsOfAll();
    expect(comments.flatMap(namesIn).length).toBeGreaterThan(500);
    expect(comments.flatMap(problemsOf)).toEqual([]);
  });

  it.each([
    ['of the folder', '// As main.ts sets it.', 0],
    ['of a folder above', '// As bin/strongroom.ts sets it.', 0],
    ['of another room', '/** As it is listened on (listen.ts). */', 1],
    ['that went, after code', 'const limit = 5; // as api/hex.ts has it', 1],
    ['that are two, and one of them there', '// The words of main.ts and of nowhere.ts.', 1],
    ['in a string', "const file = 'api/hex.ts';", 0],
    ['of an address', '// https://example.org/api/hex.ts', 0],
  ])('%s', (_what, line, count) => {
    expect(commentsIn('service/main.ts', line).flatMap(problemsOf)).toHaveLength(count);
  });
});
