// The reference of a program's commands in Markdown, from the descriptions that its help is made of.

import { type Description, type Flags, walkDescriptions } from './command.ts';
import { flagTerm, flagText, usageLines } from './help.ts';

/** A section for each command that can be run. @param program the words that lead to it, after `strongroom` */
export function commandReference(program: readonly string[], description: Description): string {
  return [...walkDescriptions(description, program)]
    .filter((found) => found.description.commands === undefined)
    .map(({ path, description: command }) => section(path, command))
    .join('\n');
}

function section(path: readonly string[], description: Description): string {
  const { summary, notes = [], argument, flags = {}, examples = [] } = description;
  const parts = [
    `### strongroom ${path.join(' ')}`,
    `${summary}.`,
    listing(usageLines(path, description)),
    ...notes,
    ...(argument === undefined ? [] : [`\`${argument.name}\`: ${argument.meaning}.`]),
    ...flagTable(flags),
    ...(examples.length === 0 ? [] : [listing(examples)]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function flagTable(flags: Flags): string[] {
  const rows = Object.entries(flags)
    .filter(([, { formerly }]) => formerly === undefined)
    .map(([name, flag]) => `| \`${cell(flagTerm(name, flag))}\` | ${cell(flagText(flag))} |`);
  return rows.length === 0 ? [] : [['| Flag | Meaning |', '|---|---|', ...rows].join('\n')];
}

function listing(lines: readonly string[]): string {
  return ['```', ...lines, '```'].join('\n');
}

/** GitHub Flavored Markdown, tables: a bar in a cell is escaped, in code too. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
