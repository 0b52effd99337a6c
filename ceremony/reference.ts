// docs/reference/ceremony.md, from the descriptions of the commands.

import type { Description } from '../common/command-line/command.ts';
import { commandReference } from '../common/command-line/reference.ts';

export function ceremonyReference(description: Description): string {
  return `# Ceremony commands

Generated from the source by \`make docs\`. What they are for, step by step, is in
[guides/participants.md](../guides/participants.md) and [guides/custody.md](../guides/custody.md).

\`strongroom ceremony COMMAND\` works offline: neither network nor cloud is reached. Data goes to stdout, everything
else to stderr; \`--help\` of every command and group has more examples. Exit codes: 0 done; 1 wrong usage, a local fault, or a
check that failed; 70 a bug. What is said of \`FILE\` holds for the commands behind it.

${commandReference(['ceremony'], description)}`;
}
