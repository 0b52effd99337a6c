// docs/reference/configuration.md, from the option table and the rules. Prose here is only what the table cannot say:
// how layers and text forms work, and the members of object-valued options.

import { flagTerm } from '../../common/command-line/help.ts';
import { defaultText } from '../../service/config/help.ts';
import { flagOf, variableOf } from '../../service/config/option-names.ts';
import { SERVICE_RULES, SERVICE_WARNINGS } from '../../service/config/rules.ts';
import { SERVER_FLAGS } from '../../service/config/server-flags.ts';
import { OPTION_PATHS, type OptionPath, optionAt } from '../../signer/config/options.ts';
import { code, codes, table } from './markdown.ts';

export function configurationReference(): string {
  const groups = Map.groupBy(OPTION_PATHS, (path) => path.split('.')[0] ?? path);
  return `${[
    '# Configuration',
    'Generated from the source by `make docs`. A complete, commented file is in `docs/examples/strongroom.yaml`; for an enclave, `docs/examples/enclave.yaml`.',
    LAYERS,
    '## Server flags that are not options',
    table(Object.entries(SERVER_FLAGS).map(([name, flag]) => [flagTerm(name, flag), flag.meaning])),
    '## Options',
    HOW_TO_READ,
    ...[...groups].flatMap(([group, paths]) => [`### ${group}`, optionList(paths), MEMBERS[group] ?? '']),
    '## Rules between options',
    'The number is that of the startup failure in docs/specification/operating.md.',
    SERVICE_RULES.map(({ says, startupFailure }) => `- ${says}${startupFailure ? ` (${startupFailure})` : ''}`).join(
      '\n',
    ),
    '## Warnings',
    '`server --check` and a start say these, and the signer starts.',
    warningList(),
  ]
    .filter((part) => part !== '')
    .join('\n\n')}\n`;
}

const LAYERS = `## Layers

[Operating](../specification/operating.md#configuration) says which layer wins and what is refused.

- **Flags**: a boolean flag without a value is \`true\`. List flags are comma-separated, except repeatable ones, which take one
  item each time. Arguments are visible to other users of the machine: give secrets through the environment or the file.
- **Environment**: lists are comma-separated; objects are JSON. Members of an object of a fixed shape have variables, too:
  \`SVC_CEREMONY__KMS_THRESHOLD\`, \`SVC_STATIC_AUTH__ANONYMOUS__POLICIES\`. They go over the whole object, wherever it is set,
  and a list among them is JSON. Variables that the configuration refers to with \`env:\`, and \`SVC_OPERATOR_*\`, are none of
  options.
- **File**: YAML 1.2, one document. Unknown and repeated keys, anchors, aliases and custom tags are refused, and a file that sets
  nothing. A section without options, such as \`signer_state:\` alone, counts as set.
- **Empty text** is an empty list for a list option and a mistake for every other; it never means "unset". Booleans are
  \`true\` or \`false\` in every layer.`;

/** Where the members of object-valued options stand, by the section they are shown in. */
const MEMBERS: Readonly<Record<string, string>> = {
  static_auth:
    'Members: [static auth](../specification/authorization.md#static-auth) and [rules](../specification/authorization.md#rules).',
  tls: 'Members of `known_clients`: [client certificates](../specification/authorization.md#client-certificates).',
  ceremony: 'Members: [the ceremony](../specification/custody.md#ceremony).',
  tee: 'Members of an endpoint: [egress](../specification/enclave.md#egress). An accepted image has the members `PCR0`, `PCR1` and `PCR2`, as in its pcrs.json.',
};

const NO_EFFECT = 'does nothing: ';

/** What has no effect is one line: the warning itself says why, and so does the option. */
function warningList(): string {
  const useless = SERVICE_WARNINGS.filter(({ says }) => says.startsWith(NO_EFFECT));
  const others = SERVICE_WARNINGS.filter(({ says }) => !says.startsWith(NO_EFFECT));
  const lines = [...Map.groupBy(others, ({ says }) => says)].map(
    ([says, alike]) => `- ${codes(alike.map(({ at }) => at))} ${says}.`,
  );
  const names = codes(useless.map(({ at }) => at));
  return [...lines, `- Set, and without effect because of another option (the warning says which): ${names}.`].join(
    '\n',
  );
}

const HOW_TO_READ = `In brackets: what the value is (a range is of integers), its default where it has one (a default of \`true\` or \`false\`
stands alone), and *flag* where the option has a flag. The flag is
\`--\` and the path with \`-\` for dots and underscores, the variable \`SVC_\` and the path in upper case with \`__\` for dots:
\`server.listen_port\` is \`--server-listen-port\` and \`${variableOf('server.listen_port')}\`.`;

function optionList(paths: readonly OptionPath[]): string {
  const lines = paths.map((path) => {
    const { kind, meaning } = optionAt(path);
    const fallback = defaultText(path);
    const terms = [...valueTerm(kind.expects, fallback), ...flagTerms(path)];
    return `- ${code(path)} (${terms.join('; ')}): ${meaning}`;
  });
  return lines.join('\n');
}

/** What the value is, and its default. A boolean shows what it is by its default; `HOW_TO_READ` says so of numbers. */
function valueTerm(expects: string, fallback: string | undefined): string[] {
  const terms = fallback === undefined ? [] : [code(fallback)];
  if (expects === BOOLEAN && fallback !== undefined) return terms;
  const short = expects
    .replace(/^an integer from /, '')
    .replace(OPERATION_LIST, 'a list of [operations](authorization.md#operations)')
    .replace(TABLE_NAME, 'a table by name or [ARN](../guides/custody.md#2-tables-and-permissions)');
  return [short, ...terms];
}

const BOOLEAN = 'true or false';
const OPERATION_LIST = /a list, each one of AGGREGATION_SLOT[A-Z0-9_, ]+/;
const TABLE_NAME = /^the name of a DynamoDB table .*/;

function flagTerms(path: OptionPath): string[] {
  const flag = flagOf(path);
  if (flag === undefined) return [];
  const isRegular = optionAt(path).flag === 'regular';
  return [
    `${isRegular ? 'flag' : `flag ${code(flag)}`}${optionAt(path).kind.form === 'repeated' ? ', repeatable' : ''}`,
  ];
}
