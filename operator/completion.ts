// Completion scripts from the command tree. Each follows the words typed so far down the tree, skips what is no command
// (flags and their values), and offers what comes next; after a flag that takes a value it offers the choices, or
// files.

import type { Flag, Group } from './command.ts';
import { flagsOf, type Node, walk } from './walk.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** What can follow the words of `path`: `/operator/auth`. */
interface Place {
  readonly path: string;
  readonly candidates: readonly { readonly word: string; readonly meaning: string }[];
}

export function completionScript(shell: (typeof SHELLS)[number], tree: Group): string {
  const nodes = [...walk(tree)];
  const places = nodes.map(placeOf);
  const flags = new Map(nodes.flatMap(({ node }) => (node.kind === 'group' ? [] : Object.entries(flagsOf(node)))));
  if (shell === 'fish') return fish(places, flags);
  // zsh runs the functions of bash completion; its own `words` and `path` are left alone by them.
  const start = shell === 'zsh' ? '#compdef strongroom\nautoload -U +X bashcompinit && bashcompinit\n\n' : '';
  return start + bash(places, flags);
}

function placeOf({ path, node }: Node): Place {
  const candidates =
    node.kind === 'group'
      ? Object.entries(node.commands).map(([word, { summary }]) => ({ word, meaning: summary }))
      : [
          ...(node.argument?.choices ?? []).map((word) => ({ word, meaning: '' })),
          ...Object.entries(flagsOf(node)).map(([name, { meaning }]) => ({ word: `--${name}`, meaning })),
        ];
  return { path: `/${['operator', ...path].join('/')}`, candidates };
}

function bash(places: readonly Place[], flags: ReadonlyMap<string, Flag>): string {
  const takingValues = [...flags].filter(([, { placeholder }]) => placeholder !== undefined);
  const [free, chosen] = [false, true].map((has) =>
    takingValues.filter(([, flag]) => (flag.choices !== undefined) === has),
  );
  return `_strongroom_operator() {
  local place='' word candidates=''
  local -i at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    case "$place/$word" in
${places.map(({ path }) => `      ${path}) place="$place/$word" ;;\n`).join('')}    esac
  done
  case "$place" in
    '') candidates=operator ;;
${places.map(({ path, candidates }) => `    ${path}) candidates='${candidates.map(({ word }) => word).join(' ')}' ;;\n`).join('')}  esac
  case "\${COMP_WORDS[COMP_CWORD - 1]}" in
${(chosen ?? []).map(([name, { choices }]) => `    --${name}) candidates='${choices?.join(' ')}' ;;\n`).join('')}    ${(free ?? []).map(([name]) => `--${name}`).join(' | ')}) candidates='' ;;
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _strongroom_operator strongroom
`;
}

/** Places end with a slash here: fish takes an empty text for no text. */
function fish(places: readonly Place[], flags: ReadonlyMap<string, Flag>): string {
  const lines = places.flatMap(({ path, candidates }) =>
    candidates.map(({ word, meaning }) => {
      const offer = word.startsWith('--') ? fishFlag(word.slice(2), flags.get(word.slice(2))) : `-f -a ${word}`;
      return `complete -c strongroom -n 'test (__strongroom_place) = ${path}/' ${offer} -d ${quote(meaning)}`;
    }),
  );
  return `function __strongroom_place
    set -l place ''
    for word in (commandline -opc)[2..]
        contains -- "$place/$word" ${places.map(({ path }) => path).join(' ')}
        and set place "$place/$word"
    end
    echo "$place/"
end
complete -c strongroom -n 'test (__strongroom_place) = /' -a operator
${lines.join('\n')}
`;
}

function fishFlag(name: string, flag: Flag | undefined): string {
  if (flag?.choices !== undefined) return `-l ${name} -x -a '${flag.choices.join(' ')}'`;
  return flag?.placeholder === undefined ? `-l ${name}` : `-l ${name} -r`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
