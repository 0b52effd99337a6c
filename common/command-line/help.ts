// The help of every program, from descriptions (command.ts): usage, what can follow, flags, what else is said, and
// examples.

import { type Description, type Flag, toldFlags } from './command.ts';
import { argumentUsage } from './read-command.ts';
import { DEFAULT_COLUMNS, wrap } from './wrap.ts';

const PROGRAM = 'strongroom';
const INDENT = '  ';
/** A term that is longer stands on a line of its own. */
const MAX_TERM_CHARACTERS = 28;
/** A text in the column after the terms is hard to read when it is narrower than this. */
const MIN_TEXT_COLUMNS = 30;

export function renderHelp(path: readonly string[], description: Description, columns = DEFAULT_COLUMNS): string {
  const { summary, notes = [], argument, sections = [], examples = [] } = description;
  const name = [PROGRAM, ...path].join(' ');
  const isGroup = description.commands !== undefined;
  const said = notes.map((note) => (/^\s/.test(note) ? [note] : wrap(note, columns)));
  const parts = [
    wrap(`${name}: ${summary}`, columns),
    usage(path, description, columns),
    ...(examples.length === 0
      ? []
      : [['Examples:', ...examples.flatMap((example) => example.split('\n').map((line) => INDENT + line))]]),
    ...(isGroup ? [] : said),
    ...(argument === undefined ? [] : [section('Arguments', [[argument.name, argumentText(argument)]], columns)]),
    ...commands(description, columns),
    ...flags(description, columns),
    ...(isGroup ? said : []),
    ...sections.map(({ heading, entries }) => section(heading, entries, columns)),
    ...(!isGroup ? [] : [wrap(`\`${name} COMMAND --help\` for a command`, columns)]),
  ];
  return parts.map((lines) => `${lines.join('\n')}\n`).join('\n');
}

export function usageLines(path: readonly string[], description: Description): readonly string[] {
  const name = [PROGRAM, ...path].join(' ');
  return (description.usage ?? [usageOf(description)]).map((way) => `${name} ${way}`.trimEnd());
}

export function flagTerm(name: string, flag: Flag): string {
  const short = flag.short === undefined ? '' : `-${flag.short}, `;
  const value = flag.placeholder === undefined ? '' : ` ${valueText(flag)}`;
  return `${short}--${name}${flag.isBoolean === true ? '[=true|false]' : value}`;
}

export function flagText({ meaning, repeatable, required }: Flag): string {
  const also = [...(required === true ? ['needed'] : []), ...(repeatable === true ? ['repeatable'] : [])];
  return also.length === 0 ? meaning : `${meaning} (${also.join(', ')})`;
}

/** Choices that are too many to read in one word are said by the placeholder, and listed by the meaning. */
function valueText({ placeholder = '', choices }: Flag): string {
  const list = choices?.join('|') ?? '';
  return list === '' || list.length > MAX_TERM_CHARACTERS ? placeholder : list;
}

function argumentText({
  meaning,
  choices,
}: {
  readonly meaning: string;
  readonly choices?: readonly string[];
}): string {
  return choices === undefined ? meaning : `${meaning}: ${choices.join(', ')}`;
}

function usage(path: readonly string[], description: Description, columns: number): string[] {
  const ways = usageLines(path, description);
  const start = ways.length === 1 ? 'Usage: ' : INDENT;
  const lines = ways.flatMap((way) =>
    wrapUsage(way, columns - start.length).map((line, at) => (at === 0 ? start : ' '.repeat(start.length)) + line),
  );
  return ways.length === 1 ? lines : ['Usage:', ...lines];
}

/** What is left out or given as one stays on one line: a flag with its value, and what stands in brackets. */
function wrapUsage(way: string, columns: number): string[] {
  const [first = '', ...rest] = wrap(way.replaceAll(/\[[^\]]*\]|--?[a-z-]+ [A-Z]\S*/g, joined), columns);
  const below = rest.length === 0 ? [] : wrap(rest.join(' '), columns - INDENT.length);
  return [first, ...below.map((line) => INDENT + line)].map((line) => line.replaceAll(JOINT, ' '));
}

/** A blank at which no line is broken. */
const JOINT = '\u{a0}';

function joined(words: string): string {
  return words.replaceAll(' ', JOINT);
}

function usageOf(description: Description): string {
  if (description.commands !== undefined) return 'COMMAND [ARGUMENTS]';
  const { help: _, ...flags } = toldFlags(description);
  const needed = Object.entries(flags).filter(([, { required }]) => required === true);
  const words = [
    ...(description.argument === undefined ? [] : [argumentUsage(description.argument)]),
    ...needed.map(([name, flag]) => `${flag.short === undefined ? `--${name}` : `-${flag.short}`} ${valueText(flag)}`),
    ...(Object.keys(flags).length > needed.length ? ['[OPTIONS]'] : []),
  ];
  return words.join(' ');
}

function commands({ commands: below = {} }: Description, columns: number): string[][] {
  const entries = Object.entries(below).map(([word, { summary }]) => [word, summary] as const);
  return entries.length === 0 ? [] : [section('Commands', entries, columns)];
}

function flags(description: Description, columns: number): string[][] {
  const byHeading = Map.groupBy(Object.entries(toldFlags(description)), ([, { heading = 'Options' }]) => heading);
  return [...byHeading].map(([heading, ones]) =>
    section(
      heading,
      ones.map(([name, flag]) => [flagTerm(name, flag), flagText(flag)] as const),
      columns,
    ),
  );
}

type Entry = readonly [term: string, text: string];

function section(heading: string, entries: readonly Entry[], columns: number): string[] {
  const longest = Math.max(
    0,
    ...entries.map(([term]) => term.length).filter((length) => length <= MAX_TERM_CHARACTERS),
  );
  const start = INDENT.length + Math.min(longest, columns - MIN_TEXT_COLUMNS) + 2;
  const lines = entries.flatMap(([term, text]) => {
    const [first = '', ...rest] = wrap(text, columns - start);
    const shown = INDENT + term;
    const isBeside = shown.length + 2 <= start;
    const head = isBeside ? [`${shown.padEnd(start)}${first}`.trimEnd()] : [shown, ' '.repeat(start) + first];
    return [...head, ...rest.map((line) => ' '.repeat(start) + line)];
  });
  return [`${heading}:`, ...lines];
}
