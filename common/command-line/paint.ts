// Whether an output is coloured (specification/operating.md#colour; no-color.org, force-color.org), and the three
// colours of verdicts. A log has none of these.

export type Environment = Readonly<Record<string, string | undefined>>;

export function hasColor({ isTTY }: { readonly isTTY?: boolean | undefined }, env: Environment): boolean {
  const { NO_COLOR: off = '', FORCE_COLOR: forced = '', TERM: kind } = env;
  if (off !== '') return false;
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return isTTY === true && kind !== 'dumb';
}

export type Tone = 'good' | 'bad' | 'doubtful';

/** Each line of the text by itself, so that no colour runs on into a line of others. */
export type Paint = (text: string, tone: Tone) => string;

const COLORS: Readonly<Record<Tone, string>> = { good: '\u001B[32m', bad: '\u001B[31m', doubtful: '\u001B[33m' };

const RESET = '\u001B[0m';

export function painter(stream: { readonly isTTY?: boolean | undefined }, env: Environment): Paint {
  if (!hasColor(stream, env)) return (text) => text;
  return (text, tone) => text.replaceAll(/^.+$/gm, (line) => `${COLORS[tone]}${line}${RESET}`);
}

/** Words of a table that are a result, where its second column begins with them; nothing else is coloured. */
export function paintResults(table: string, tones: Readonly<Record<string, Tone>>, paint: Paint): string {
  const result = new RegExp(`^(\\S.*? {2,})(${Object.keys(tones).join('|')})(?=[ :]|$)`, 'gm');
  return table.replaceAll(result, (all, before: string, word: string) => {
    const tone = tones[word];
    return tone === undefined ? all : before + paint(word, tone);
  });
}
