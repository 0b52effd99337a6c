// What helps people to type commands: manual pages and completion scripts, from what the programs of a release say of
// themselves, so that they offer nothing that a release does not have. Paths are those beneath /usr.

import { completionScript, type Shell } from '../../common/command-line/completion.ts';
import { manPages } from '../../common/command-line/manual.ts';
import { described } from './absent/described.ts';
import { isoTime, type Origin } from './origin.ts';

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: 'share/bash-completion/completions/strongroom',
  zsh: 'share/zsh/vendor-completions/_strongroom',
  fish: 'share/fish/vendor_completions.d/strongroom.fish',
};

const DATE = /^\d{4}-\d{2}-\d{2}/;

/** By their paths. */
export async function typedFiles(origin: Origin): Promise<ReadonlyMap<string, string>> {
  const everything = await described();
  const [date = ''] = DATE.exec(isoTime(origin)) ?? [];
  const manuals = manPages(everything, { version: origin.version, date });
  const scripts = Object.entries(SCRIPTS) as [Shell, string][];
  return new Map([
    ...manuals.map(({ name, text }): [string, string] => [`share/man/man1/${name}`, text]),
    ...scripts.map(([shell, path]): [string, string] => [path, completionScript(shell, everything)]),
  ]);
}
