// docs/reference/ceremony.md, from the descriptions of the commands.

import { type Description, walkDescriptions } from '../../common/command-line/command.ts';
import { flagTerm, flagText, usageLines } from '../../common/command-line/help.ts';
import { table } from './markdown.ts';

export function ceremonyReference(description: Description): string {
  return `# Ceremony commands

Generated from the source by \`make docs\`. What they are for, step by step, is in
[guides/participants.md](../guides/participants.md) and [guides/custody.md](../guides/custody.md).

\`strongroom ceremony COMMAND\` works offline: neither network nor cloud is reached. Data goes to stdout, everything
else to stderr; \`--help\` of every command and group has more examples. Exit codes: 0 done; 1 wrong usage, a local fault, or a
check that failed; 70 a bug. What is said of \`FILE\` holds for the commands behind it.

${commandReference(['ceremony'], description)}`;
}

// The reference of a program's commands in Markdown, from the descriptions that its help is made of.

function commandReference(program: readonly string[], description: Description): string {
  let said = '';
  return [...walkDescriptions(description, program)]
    .filter((found) => found.description.commands === undefined)
    .map(({ path, description: command }) => {
      const text = section(path, command, said);
      said = argumentLine(command) ?? said;
      return text;
    })
    .join('\n');
}

function argumentLine({ argument }: Description): string | undefined {
  return argument && `\`${argument.name}\`: ${argument.meaning}.`;
}

/** @param said what the command with an argument before this one says of it */
function section(path: readonly string[], description: Description, said: string): string {
  const { summary, notes = [], flags = {}, examples = [] } = description;
  const argument = argumentLine(description);
  const parts = [
    `### strongroom ${path.join(' ')}`,
    `${summary}.`,
    ...(examples.length === 0 ? [listing(usageLines(path, description))] : []),
    ...notes,
    ...(argument === undefined || argument === said ? [] : [argument]),
    table(Object.entries(flags).map(([name, flag]) => [flagTerm(name, flag), flagText(flag)])),
    ...(examples.length === 0 ? [] : [listing(examples.slice(0, 1))]),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function listing(lines: readonly string[]): string {
  return ['```', ...lines, '```'].join('\n');
}
