// Completion scripts for bash, zsh and fish, from the descriptions of every program. Each script follows the words
// typed so far down the tree, and offers what comes next.

import { type Description, toldFlags, walkDescriptions } from './command.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

interface Offer {
  readonly word: string;
  readonly meaning: string;
}

interface Place {
  readonly path: string;
  readonly words: readonly Offer[];
  readonly flags: readonly Offer[];
  /** Flags that take a value, as they are written: with what it can be; undefined for anything. */
  readonly values: ReadonlyMap<string, readonly string[] | 'profiles' | undefined>;
  readonly takesAnything: boolean;
}

export function completionScript(shell: Shell, top: Description): string {
  const places = [...walkDescriptions(top)].map(({ path, description }) => placeOf(path, description));
  if (shell === 'fish') return fish(places);
  return shell === 'zsh' ? zsh(places) : bash(places);
}

function placeOf(path: readonly string[], description: Description): Place {
  const { commands = {}, argument } = description;
  const flags = Object.entries(toldFlags(description));
  const taking = flags.filter(([, { placeholder }]) => placeholder !== undefined);
  return {
    path: path.map((word) => `/${word}`).join(''),
    words: [
      ...Object.entries(commands).map(([word, { summary }]) => ({ word, meaning: summary })),
      ...(argument?.choices ?? []).map((word) => ({ word, meaning: argument?.meaning ?? '' })),
    ],
    flags: flags.map(([name, { meaning }]) => ({ word: `--${name}`, meaning: meaning.split(/[.;] /, 1)[0] ?? '' })),
    values: new Map(
      taking.flatMap(([name, { short, choices, isProfile }]) => {
        const value = isProfile === true ? 'profiles' : choices;
        const spellings = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
        return spellings.map((flag) => [flag, value] as const);
      }),
    ),
    takesAnything: argument !== undefined && argument.choices === undefined,
  };
}

/** Where a value could be taken for a command: it is skipped there. */
function skipped({ path, words, values }: Place): string[] {
  return words.length === 0 ? [] : [...values.keys()].map((flag) => `${path}/${flag}`);
}

/** Its own functions, so that each offer stands with its meaning. A file of $fpath is run at the first completion. */
function zsh(places: readonly Place[]): string {
  const skips = places.flatMap(skipped);
  return `#compdef strongroom
_strongroom() {
  local place='' word previous=\${words[CURRENT-1]}
  local -i at
  local -a offers flags
  if [[ $PREFIX == --*=* ]]; then
    previous=\${PREFIX%%=*}
    compset -P '*='
  fi
  for ((at = 2; at < CURRENT; at++)); do
    word=\${words[at]}
    case "$place/$word" in
      ${patterns(places.slice(1).map(({ path }) => path))}) place="$place/$word" ;;
${skips.length === 0 ? '' : `      ${patterns(skips)}) at+=1 ;;\n`}    esac
  done
  case "$place $previous" in
${places.map(zshValues).join('')}  esac
  case "$place" in
${places.map(zshWords).join('')}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option flags
  elif (( \${#offers} )); then
    _describe command offers
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _strongroom ]]; then _strongroom "$@"; else compdef _strongroom strongroom; fi
`;
}

const ZSH_PROFILES = `\${(f)"$(\${words[1]} completion profiles 2>/dev/null)"}`;

function zshValues({ path, values }: Place): string {
  const free = [...values].filter(([, value]) => value === undefined).map(([flag]) => `${path} ${flag}`);
  const others = [...values].flatMap(([flag, value]) => {
    if (value === undefined) return [];
    // The program itself reads the file of profiles.
    const words = value === 'profiles' ? ZSH_PROFILES : value.join(' ');
    return [`    '${path} ${flag}') compadd -- ${words}; return ;;\n`];
  });
  return others.join('') + (free.length === 0 ? '' : `    ${patterns(free)}) _files; return ;;\n`);
}

function zshWords({ path, words, flags, takesAnything }: Place): string {
  const list = (offers: readonly Offer[]): string =>
    offers.map(({ word, meaning }) => quoteForZsh(`${word.replaceAll(':', '\\:')}:${meaning}`)).join(' ');
  const first = words.length === 0 && !takesAnything ? flags : words;
  return `    '${path}') offers=(${list(first)}) flags=(${list(flags)}) ;;\n`;
}

function quoteForZsh(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function bash(places: readonly Place[]): string {
  const skips = places.flatMap(skipped);
  return `_strongroom() {
  local place='' word current previous joined='' words='' flags=''
  local -i at
  current=\${COMP_WORDS[COMP_CWORD]}
  previous=\${COMP_WORDS[COMP_CWORD - 1]}
  # bash breaks words at =, zsh does not
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $current == --*=* ]]; then
    previous=\${current%%=*}
    joined=$previous=
    current=\${current#*=}
  fi
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    case "$place/$word" in
      ${patterns(places.slice(1).map(({ path }) => path))}) place="$place/$word" ;;
${skips.length === 0 ? '' : `      ${patterns(skips)}) at+=1 ;;\n`}    esac
  done
  case "$place $previous" in
${places.map(bashValues).join('')}    *)
      case "$place" in
${places.map(bashWords).join('')}      esac
      case "$current" in
        -*) words=$flags ;;
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -P "$joined" -- "$current"))
}
complete -o default -F _strongroom strongroom
`;
}

function bashValues({ path, values }: Place): string {
  const free = [...values].filter(([, value]) => value === undefined).map(([flag]) => `${path} ${flag}`);
  const others = [...values].flatMap(([flag, value]) => {
    if (value === undefined) return [];
    const words = value === 'profiles' ? `$("$1" completion profiles 2>/dev/null)` : `'${value.join(' ')}'`;
    return [`    '${path} ${flag}') words=${words} ;;\n`];
  });
  return others.join('') + (free.length === 0 ? '' : `    ${patterns(free)}) ;;\n`);
}

function bashWords({ path, words, flags, takesAnything }: Place): string {
  const [ofWords, ofFlags] = [words, flags].map((offers) => offers.map(({ word }) => word).join(' '));
  const first = words.length === 0 && !takesAnything ? ofFlags : ofWords;
  return `        '${path}') words='${first}' flags='${ofFlags}' ;;\n`;
}

function patterns(texts: readonly string[]): string {
  return texts.map((text) => `'${text}'`).join('|');
}

function fish(places: readonly Place[]): string {
  return `function __strongroom_offers
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l previous $typed[-1]
    set -l joined ''
    if string match -q -- '--*=*' $current
        set previous (string split -m 1 = -- $current)[1]
        set joined $previous=
    end
    set -l place ''
    set -l skip 0
    for word in $typed[2..]
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$place/$word"
            case ${patternsOfFish(places.slice(1).map(({ path }) => path))}
                set place "$place/$word"
${fishSkips(places.flatMap(skipped))}        end
    end
    switch "$place $previous"
${places.map(fishValues).join('')}        case '*'
            switch "$place"
${places.map(fishWords).join('')}            end
    end
end
complete -c strongroom -f -a '(__strongroom_offers)'
`;
}

function fishSkips(skips: readonly string[]): string {
  return skips.length === 0 ? '' : `            case ${patternsOfFish(skips)}\n                set skip 1\n`;
}

const FILES_IN_FISH = '__fish_complete_path (string replace -- "$joined" "" $current)';

function fishValues({ path, values }: Place): string {
  return [...values]
    .map(([flag, value]) => `        case '${path} ${flag}'\n            ${fishOffer(value)}\n`)
    .join('');
}

function fishOffer(value: readonly string[] | 'profiles' | undefined): string {
  if (value === undefined) return FILES_IN_FISH;
  if (value === 'profiles') return `printf '%s\\n' $joined($typed[1] completion profiles 2>/dev/null)`;
  return `printf '%s\\n' ${value.map((word) => `$joined${quote(word)}`).join(' ')}`;
}

function fishWords({ path, words, flags, takesAnything }: Place): string {
  const lines = (offers: readonly Offer[]): string =>
    offers.map(({ word, meaning }) => quote(`${word}\t${meaning}`)).join(' ');
  const shown = words.length === 0 && !takesAnything ? flags : words;
  const printed = shown.length === 0 ? FILES_IN_FISH : `printf '%s\\n' ${lines(shown)}`;
  return `                case '${path}'
                    if string match -q -- '-*' $current
                        printf '%s\\n' ${lines(flags)}
                    else
                        ${printed}
                    end
`;
}

function patternsOfFish(texts: readonly string[]): string {
  return texts.map((text) => `'${text}'`).join(' ');
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
