// Manual pages of the programs (roff, man(7)), from the descriptions that their help is made from: one for strongroom,
// and one for each program with all its commands, which says once what most of them take. A release contains them.

import { type Description, type Flags, toldFlags, walkDescriptions } from '../../common/command-line/command.ts';
import { flagTerm, flagText, usageLines } from '../../common/command-line/help.ts';

interface ManPage {
  readonly name: string;
  readonly text: string;
}

interface ManOptions {
  readonly version: string;
  readonly date: string;
}

const SECTION = 1;
const NAME = 'strongroom';
/** Of so few commands each says all of its options. */
const MIN_COMMANDS_WITH_COMMON_OPTIONS = 4;

export function manPages(top: Description, options: ManOptions): readonly ManPage[] {
  const programs = Object.entries(top.commands ?? {});
  const all = [NAME, ...programs.map(([word]) => `${NAME}-${word}`)];
  const pageOf = (path: readonly string[], description: Description): ManPage => {
    const name = [NAME, ...path].join('-');
    const isTop = path.length === 0;
    const others = isTop ? all.slice(1) : all.slice(0, 1);
    const text = [...header(name, options), ...body(path, description, isTop), ...seeAlso(others)].join('\n');
    return { name: `${name}.${SECTION}`, text: `${text}\n` };
  };
  return [pageOf([], top), ...programs.map(([word, description]) => pageOf([word], description))];
}

function header(name: string, { version, date }: ManOptions): string[] {
  const title = `.TH ${name.toUpperCase().replaceAll('-', '\\-')} ${SECTION} ${date} "${NAME} ${version}" "${NAME}"`;
  // No hyphens are put into words, nor blanks between them: what is read here is typed.
  return [title, '.nh', '.ad l'];
}

function body(path: readonly string[], description: Description, isTop: boolean): string[] {
  const { summary, notes = [], sections = [], examples = [], commands = {} } = description;
  return [
    '.SH NAME',
    `${literal([NAME, ...path].join('-'))} \\- ${escaped(summary)}`,
    '.SH SYNOPSIS',
    ...synopsis(path, description),
    ...(examples.length === 0 ? [] : ['.SH EXAMPLES', ...verbatim(examples)]),
    ...(notes.length === 0 ? [] : ['.SH DESCRIPTION', ...paragraphs(notes)]),
    ...(isTop ? ['.SH PROGRAMS', ...terms(summariesOf(commands))] : below(path, commands)),
    ...argumentOf(description),
    ...options(toldFlags(description), '.SH'),
    ...sections.flatMap(({ heading, entries }) => [`.SH ${escaped(heading.toUpperCase())}`, ...terms(entries)]),
  ];
}

/** Each command of a program, without groups that take nothing of their own: their commands are listed. */
function below(path: readonly string[], commands: Readonly<Record<string, Description>>): string[] {
  const found = Object.entries(commands).flatMap(([word, description]) => [
    ...walkDescriptions(description, [...path, word]),
  ]);
  const leaves = found.filter(
    ({ description: { commands: more, flags } }) => more === undefined || flags !== undefined,
  );
  if (leaves.length === 0) return [];
  const common = commonFlags(leaves.map(({ description }) => toldFlags(description)));
  return [
    '.SH COMMANDS',
    ...leaves.flatMap((leaf) => command(leaf.path, leaf.description, common)),
    ...(Object.keys(common).length === 0 ? [] : [`.SH ${COMMON}`, ...flagTerms(common)]),
  ];
}

const COMMON = 'COMMON OPTIONS';

/** Those that more than half of the commands have, in the same words. */
function commonFlags(all: readonly Flags[]): Flags {
  if (all.length < MIN_COMMANDS_WITH_COMMON_OPTIONS) return {};
  const key = ([name, flag]: [string, Flags[string]]): string => `${flagTerm(name, flag)} ${flagText(flag)}`;
  const counted = Map.groupBy(
    all.flatMap((flags) => Object.entries(flags)),
    key,
  );
  return Object.fromEntries(
    [...counted.values()].flatMap((same) => (same.length * 2 > all.length && same[0] !== undefined ? [same[0]] : [])),
  );
}

function command(path: readonly string[], description: Description, common: Flags): string[] {
  const { summary, notes = [], sections = [], examples = [] } = description;
  const flags = toldFlags(description);
  const hasCommon = Object.entries(common).every(([name, { meaning }]) => flags[name]?.meaning === meaning);
  const own = hasCommon ? Object.fromEntries(Object.entries(flags).filter(([name]) => !(name in common))) : flags;
  return [
    `.SS ${literal(path.slice(1).join(' '))}`,
    escaped(summary),
    '.PP',
    ...synopsis(path, description),
    ...(examples.length === 0 ? [] : ['.PP', 'Examples:', ...verbatim(examples)]),
    ...paragraphs(notes),
    ...argumentOf(description),
    ...options(own, '.PP'),
    ...(hasCommon && Object.keys(common).length > 0 ? ['.PP', `And the ${COMMON}.`] : []),
    ...sections.flatMap(({ heading, entries }) => ['.PP', `${escaped(heading)}:`, ...terms(entries)]),
  ];
}

function synopsis(path: readonly string[], description: Description): string[] {
  const ways = usageLines(path, description).map((way) => `.B ${literal(way)}`);
  return ways.flatMap((way, at) => (at === 0 ? [way] : ['.br', way]));
}

function argumentOf({ argument }: Description): string[] {
  if (argument === undefined) return [];
  const { name, meaning, choices } = argument;
  return terms([[name, choices === undefined ? meaning : `${meaning}: ${choices.join(', ')}`]]);
}

function options(all: Flags, macro: '.SH' | '.PP'): string[] {
  const byHeading = Map.groupBy(Object.entries(all), ([, { heading = 'Options' }]) => heading);
  return [...byHeading].flatMap(([heading, flags]) => [
    ...(macro === '.SH' ? [`.SH ${escaped(heading.toUpperCase())}`] : ['.PP', `${escaped(heading)}:`]),
    ...flagTerms(Object.fromEntries(flags)),
  ]);
}

function flagTerms(flags: Flags): string[] {
  return terms(Object.entries(flags).map(([name, flag]) => [flagTerm(name, flag), flagText(flag)]));
}

function summariesOf(commands: Readonly<Record<string, Description>>): (readonly [string, string])[] {
  return Object.entries(commands).map(([word, { summary }]) => [`${NAME} ${word}`, summary]);
}

function terms(entries: readonly (readonly [term: string, text: string])[]): string[] {
  return entries.flatMap(([term, text]) => ['.TP', `.B ${literal(term)}`, escaped(text)]);
}

/** One that begins with a blank stays as it is, as in the help. */
function paragraphs(notes: readonly string[]): string[] {
  return notes.flatMap((note) => (/^\s/.test(note) ? verbatim([note]) : ['.PP', escaped(note)]));
}

function verbatim(texts: readonly string[]): string[] {
  return ['.PP', '.nf', ...texts.flatMap((text) => text.split('\n')).map(literal), '.fi'];
}

function seeAlso(names: readonly string[]): string[] {
  const pages = names.map((name, at) => `.BR ${literal(name)} (${SECTION})${at === names.length - 1 ? '' : ' ,'}`);
  return ['.SH SEE ALSO', ...pages, '.PP', 'The documents of the release: docs/README.md is their index.'];
}

/** A line that begins with a dot or an apostrophe would be a request. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('\n', ' ')
    .replace(/^(?=[.'])/, '\\&');
}

/** What is typed as it stands: its hyphens are not those of words, and its quotes stay. */
function literal(text: string): string {
  return escaped(text)
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('"', '\\(dq')
    .replaceAll('`', '\\(ga');
}
