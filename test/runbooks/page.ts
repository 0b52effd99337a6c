// The command blocks of a page, in order, with what the page shows of their output. A fence that opens with ```sh is a
// block of commands, ```text right after it is what they say. Whoever writes a page marks what a block needs in the
// info string; a word that nobody knows is refused, so that no block is left out by a slip of the pen.

export interface Block {
  readonly page: string;
  readonly line: number;
  /** The anchor of the section that it stands in: what an alert or a link names. None in front of the first one. */
  readonly section: string | undefined;
  /**
   * `run`: as it stands. `yours`: values of the reader, which the world replaces. `fails`: it has to end with another
   * exit code than 0. `elsewhere`: it needs a machine that is not here, so only its syntax is looked at.
   */
  readonly kind: 'run' | 'yours' | 'fails' | 'elsewhere';
  readonly callsAws: boolean;
  /** What it needs that is not here; of `elsewhere` alone. */
  readonly needs: readonly string[];
  readonly commands: string;
  /** Lines that the output has to have, in this order. */
  readonly shown: readonly string[];
}

interface Fence {
  readonly line: number;
  readonly section: string | undefined;
  readonly info: string;
  readonly text: string;
}

/** On a line of its own, in front of the heading. */
const ANCHOR = /^<a id="([^"]+)"><\/a>$/gm;
const FENCE = /^( *)```(.*)\n([\s\S]*?)^ *```$/gm;
/** What a page may show that is not run. */
const OTHER = new Set(['text', 'yaml', 'json', 'ini', 'sql', 'http', 'mermaid']);
/** Behind `elsewhere`. `template`: it has places for the reader to fill in. */
const NEEDS = new Set([
  'build',
  'docker',
  'enclave',
  'internet',
  'kubernetes',
  'postgres',
  'prometheus',
  'root',
  'signer',
  'template',
]);
const AWS_COMMAND = /(?:^|[\s(|&;])aws /m;

/** @throws Error that names page and line */
export function blocksOf(page: string, markdown: string): readonly Block[] {
  const fences = fencesOf(markdown);
  return fences.flatMap((fence, at) => {
    const next = fences[at + 1];
    const isFollowed = next?.info === 'text' && isBlank(between(markdown, fence, next));
    const block = blockOf(page, fence, isFollowed ? linesOf(next.text) : []);
    return block === undefined ? [] : [block];
  });
}

function fencesOf(markdown: string): readonly Fence[] {
  return [...markdown.matchAll(FENCE)].map((match) => {
    const [, indent = '', info = '', text = ''] = match;
    const before = markdown.slice(0, match.index);
    return {
      line: before.split('\n').length,
      section: [...before.matchAll(ANCHOR)].at(-1)?.[1],
      info: info.trim(),
      text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    };
  });
}

function blockOf(page: string, { line, section, info, text }: Fence, shown: readonly string[]): Block | undefined {
  const refuse = (why: string): Error => new Error(`${page}:${line}: ${why}`);
  const [language = '', ...words] = info.split(' ');
  if (OTHER.has(language)) return undefined;
  if (language !== 'sh') throw refuse(`a fence is \`\`\`sh or one of ${[...OTHER].join(', ')}, not \`\`\`${info}`);
  const callsAws = words.includes('aws');
  const needs = words.filter((word) => NEEDS.has(word));
  const kinds = words.filter((word) => word !== 'aws' && !needs.includes(word));
  const [kind = 'run'] = kinds;
  if (kinds.length > 1 || !isMark(kind)) throw refuse(`nobody knows the mark: ${info}`);
  if (needs.length > 0 && kind !== 'elsewhere') throw refuse(`write: sh elsewhere ${needs.join(' ')}`);
  if (callsAws !== AWS_COMMAND.test(text)) {
    throw refuse(callsAws ? 'it is marked aws and calls no aws' : 'it calls aws: mark it ```sh aws');
  }
  return { page, line, section, kind, callsAws, needs, commands: text, shown };
}

function isMark(word: string): word is Block['kind'] {
  return ['run', 'yours', 'fails', 'elsewhere'].includes(word);
}

/** The lines of the page after one fence and before the next. */
function between(markdown: string, fence: Fence, next: Fence): string {
  const lines = markdown.split('\n');
  return lines.slice(fence.line + fence.text.split('\n').length, next.line - 1).join('\n');
}

const isBlank = (text: string): boolean => text.trim() === '';

const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => !isBlank(line));
