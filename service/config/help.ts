// What `strongroom server` says of itself, from the option table.

import type { Description, Flag } from '../../common/command-line/command.ts';
import { OPTION_PATHS, type OptionPath, optionAt } from '../../signer/config/options.ts';
import { flagOf, variableOf } from './option-names.ts';
import { SERVER_FLAGS } from './server-flags.ts';

export function serverDescription(): Description {
  const withoutFlag = OPTION_PATHS.filter((path) => flagOf(path) === undefined);
  return {
    summary: 'Run the signer',
    usage: ['[-c FILE] [OPTIONS]'],
    notes: [
      'Flags override environment variables, which override the file, which overrides the defaults. The variable of an ' +
        `option is SVC_ and its path in upper case with __ for dots: ${variableOf('server.listen_port')}. Lists are ` +
        'comma-separated unless repeatable. A boolean flag without a value is true.',
    ],
    flags: { ...SERVER_FLAGS, ...Object.fromEntries(OPTION_PATHS.flatMap(flagEntry)) },
    sections: [
      {
        heading: 'Options without a flag (file and environment only)',
        entries: withoutFlag.map((path) => [path, `${optionAt(path).meaning}.${defaultNote(path)}`]),
      },
    ],
    examples: ['strongroom server --check -c strongroom.yaml', 'strongroom server -c strongroom.yaml'],
  };
}

export function defaultText(path: OptionPath): string | undefined {
  const { default: value } = optionAt(path);
  if (value === undefined) return undefined;
  if (path === 'static_auth') return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function flagEntry(path: OptionPath): (readonly [name: string, flag: Flag])[] {
  const written = flagOf(path);
  if (written === undefined) return [];
  const { kind, meaning } = optionAt(path);
  const { form, expects, choices } = kind;
  const flag = {
    meaning: `${meaning}. Value: ${expects}.${defaultNote(path)}`,
    heading: path.split('.')[0] ?? path,
    ...(form === 'boolean' ? ({ isBoolean: true } as const) : { placeholder: PLACEHOLDER[form] }),
    ...(form === 'repeated' ? ({ repeatable: true } as const) : {}),
    ...(choices === undefined ? {} : { choices }),
  };
  return [[written.slice(2), flag]];
}

const PLACEHOLDER = { text: 'TEXT', integer: 'NUMBER', list: 'A,B,…', repeated: 'ITEM', object: 'JSON' } as const;

function defaultNote(path: OptionPath): string {
  const text = defaultText(path);
  return text === undefined ? '' : ` Default: ${text}`;
}
