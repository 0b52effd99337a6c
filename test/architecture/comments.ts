// The comments of our files: those that stand on lines of their own, and those after code. It goes line by line, and
// knows strings as far as one line shows them; for what the formatter has been over that is enough.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** What is not ours, or is generated. */
const LEFT_OUT = /(?:^|\/)(?:node_modules|build|\.git|test\/vectors|docs\/reference)(?:\/|$)/;
const SLASHES = /\.(?:ts|c|h)$/;
const HASHES = /\.(?:sh|mk|ya?ml|tf|service|conf|env|nft|fragment)$/;
/** Makefiles and scripts, whose names say nothing of it. */
const HASHES_TOO = new Set([
  ...['Makefile', 'Containerfile', 'run', 'run-enclave', 'make-secrets', 'pinned-node', 'strongroom'],
  ...['postinst', 'postrm', 'prerm'],
]);
/** Strings become this, so that columns stay: a `//` or `#` in them is none. */
const MASK = '_';

interface Marks {
  readonly alone: RegExp;
  readonly trailing: RegExp;
  readonly quoted: RegExp;
}

const SLASH_MARKS: Marks = {
  alone: /^\s*(?:\/\/|\/?\*+(?!\/))\s?(.*?)(?:\s*\*\/)?$/,
  trailing: /\S\s+\/[/*]\s+(.*)$/,
  quoted: /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`/g,
};
const HASH_MARKS: Marks = {
  alone: /^\s*#+(?!!)\s?(.*)$/,
  trailing: /\S\s+#+\s+(.*)$/,
  quoted: /'[^']*'|"(?:\\.|[^"\\])*"/g,
};

/** Lines of their own that follow each other are one comment. */
export interface Comment {
  readonly file: string;
  /** The number of its first line; the file's first is 1. */
  readonly line: number;
  readonly text: string;
  readonly lines: readonly string[];
}

export function filesBelow(folder: string, isWanted: (path: string) => boolean): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (LEFT_OUT.test(path)) return [];
    if (entry.isDirectory()) return filesBelow(path, isWanted);
    return entry.isFile() && isWanted(path) ? [path] : [];
  });
}

export function commentsOfAll(): Comment[] {
  const files = filesBelow('.', (path) => marksOf(path) !== undefined);
  return files.flatMap((file) => commentsIn(file, readFileSync(join(ROOT, file), 'utf8')));
}

export function commentsIn(file: string, text: string): Comment[] {
  const marks = marksOf(file);
  if (marks === undefined) return [];
  const comments: Comment[] = [];
  let open: { line: number; texts: string[]; lines: string[] } | undefined;
  const close = (): void => {
    if (open !== undefined) comments.push({ file, line: open.line, text: open.texts.join('\n'), lines: open.lines });
    open = undefined;
  };
  for (const [index, line] of text.split('\n').entries()) {
    const alone = marks.alone.exec(line)?.[1];
    if (alone === undefined || line.trimStart().startsWith('/*')) close();
    if (alone !== undefined) {
      open ??= { line: index + 1, texts: [], lines: [] };
      open.texts.push(alone);
      open.lines.push(line);
      continue;
    }
    const trailing = trailingComment(line, marks);
    if (trailing !== undefined) comments.push({ file, line: index + 1, text: trailing, lines: [line] });
  }
  close();
  return comments;
}

function marksOf(file: string): Marks | undefined {
  if (SLASHES.test(file)) return SLASH_MARKS;
  return HASHES.test(file) || HASHES_TOO.has(basename(file)) ? HASH_MARKS : undefined;
}

function trailingComment(line: string, { trailing, quoted }: Marks): string | undefined {
  const masked = line.replaceAll(quoted, (string) => MASK.repeat(string.length));
  const [, text] = trailing.exec(masked) ?? [];
  return text === undefined ? undefined : line.slice(line.length - text.length);
}
