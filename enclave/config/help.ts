// The text of `strongroom server --help`, from the option table.

import { SERVER_FLAGS } from './flags.ts';
import { flagOf, OPTION_PATHS, type OptionPath, optionAt, variableOf } from './options.ts';

const COLUMNS = 100;

export function serverHelp(): string {
  const withFlag = OPTION_PATHS.filter((path) => flagOf(path) !== undefined);
  const groups = Map.groupBy(withFlag, (path) => path.split('.')[0] ?? path);
  const withoutFlag = OPTION_PATHS.filter((path) => flagOf(path) === undefined);
  return [
    'Usage: strongroom server [-c FILE] [FLAGS]',
    '',
    wrap(
      'Flags override environment variables, which override the file, which overrides the defaults. The variable of an ' +
        `option is SVC_ and its path in upper case with __ for dots: ${variableOf('server.listen_port')}. Lists are ` +
        'comma-separated unless repeatable. A boolean flag without a value is true.',
      '',
    ),
    '',
    'server flags',
    ...Object.entries(SERVER_FLAGS).map(([flag, { form, meaning }]) =>
      entry(form === 'switch' ? flag : `${flag} FILE`, meaning),
    ),
    ...[...groups].flatMap(([group, paths]) => ['', group, ...paths.map(flagEntry)]),
    '',
    'options without a flag (file and environment only)',
    ...withoutFlag.map((path) => entry(path, `${optionAt(path).meaning}.${defaultNote(path)}`)),
    '',
  ].join('\n');
}

/** The default as it would be written in the file; undefined when there is none. */
export function defaultText(path: OptionPath): string | undefined {
  const { default: value } = optionAt(path);
  if (value === undefined) return undefined;
  if (path === 'static_auth') return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function flagEntry(path: OptionPath): string {
  const { kind, meaning } = optionAt(path);
  const flag = flagOf(path) ?? path;
  const repeatable = kind.form === 'repeated' ? ' Repeatable.' : '';
  const usage = kind.form === 'boolean' ? `${flag}[=true|false]` : `${flag} ${PLACEHOLDER[kind.form]}`;
  return entry(usage, `${meaning}. Value: ${kind.expects}.${repeatable}${defaultNote(path)}`);
}

const PLACEHOLDER = {
  text: 'TEXT',
  integer: 'NUMBER',
  boolean: 'BOOLEAN',
  list: 'A,B,…',
  repeated: 'ITEM',
  object: 'JSON',
} as const;

function defaultNote(path: OptionPath): string {
  const text = defaultText(path);
  return text === undefined ? '' : ` Default: ${text}`;
}

function entry(usage: string, text: string): string {
  return `  ${usage}\n${wrap(text, '      ')}`;
}

function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.length + word.length > COLUMNS && line !== indent) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${word} `;
  }
  lines.push(line.trimEnd());
  return lines.join('\n');
}
