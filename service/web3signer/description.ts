// What `strongroom web3signer` says of itself, from the table of options.

import type { Description, Flag, Flags, HelpSection } from '../../common/command-line/command.ts';
import { type OptionScope, type Web3SignerOption, web3SignerFlag } from './option.ts';
import { WEB3SIGNER_OPTIONS } from './options/options.ts';

const GLOBAL = '[global options]';

const OWN: Flags = {
  'print-config': { meaning: 'Print the configuration as a strongroom.yaml, and do nothing else' },
  version: { short: 'V', meaning: 'Print the version and exit' },
};

export function web3signerDescription(): Description {
  return {
    summary: "strongroom with Web3Signer's command line",
    usage: [
      `${GLOBAL} eth2 [options]`,
      `${GLOBAL} eth2 [options] export --to=FILE`,
      `${GLOBAL} eth2 [options] import --from=FILE`,
      `${GLOBAL} eth2 [options] watermark-repair --slot=N --epoch=N`,
      `${GLOBAL} eth2 [options] --print-config > strongroom.yaml`,
    ],
    notes: [
      'An option is honoured, accepted with a warning that says what happens instead, or refused. What becomes of ' +
        'each: docs/reference/web3signer.md.',
    ],
    flags: { ...flagsOf(''), ...OWN },
    commands: { eth2: eth2Description() },
    sections: refusedOnes(''),
    examples: ['strongroom web3signer --config-file=config.yaml eth2 --print-config > strongroom.yaml'],
  };
}

function eth2Description(): Description {
  return {
    summary: 'Sign for validators, or work on their slashing protection records',
    usage: ['[options] [COMMAND]'],
    notes: ['Global options may stand here, too.'],
    flags: { ...flagsOf('eth2'), ...flagsOf('', 'Global options'), ...OWN },
    commands: {
      export: { summary: 'Write the records to the file of --to', flags: flagsOf('eth2 export') },
      import: { summary: 'Merge the records of the file of --from', flags: flagsOf('eth2 import') },
      'watermark-repair': {
        summary: 'Refuse everything up to a slot and an epoch',
        flags: flagsOf('eth2 watermark-repair'),
      },
    },
    sections: refusedOnes('eth2'),
  };
}

const HEADINGS = { honoured: 'Honoured', accepted: 'Accepted, with a warning' } as const;

function flagsOf(scope: OptionScope, heading?: string): Flags {
  return Object.fromEntries(
    WEB3SIGNER_OPTIONS.filter((option) => option.scope === scope).flatMap((option) => {
      const { names, letter, form, becomes } = option;
      if (becomes.kind === 'refused') return [];
      const flag: Flag = {
        meaning: meaningOf(option),
        heading: heading ?? HEADINGS[becomes.kind],
        ...(letter === undefined ? {} : { short: letter }),
        ...(form === 'boolean' ? { isBoolean: true } : { placeholder: form === 'number' ? 'N' : 'TEXT' }),
      };
      return [[names[0], flag] as const];
    }),
  );
}

function meaningOf({ becomes, names }: Web3SignerOption): string {
  const [, ...others] = names;
  const also = others.length === 0 ? '' : ` (also ${others.map((name) => `--${name}`).join(', ')})`;
  if (becomes.kind === 'honoured') return becomes.how + also;
  return becomes.kind === 'accepted' ? `it ${becomes.instead}${also}` : '';
}

function refusedOnes(scope: OptionScope): readonly HelpSection[] {
  const entries = WEB3SIGNER_OPTIONS.flatMap((option) => {
    const { becomes } = option;
    return option.scope === scope && becomes.kind === 'refused'
      ? [[web3SignerFlag(option), `it ${becomes.why}`] as const]
      : [];
  });
  return entries.length === 0 ? [] : [{ heading: 'Refused', entries }];
}
