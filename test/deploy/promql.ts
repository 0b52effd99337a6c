// What a PromQL expression names: its metrics, their label matchers, and the labels that it groups by. Reads the part
// of the language that rules and dashboards here are written in; promtool judges the syntax.

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

export interface Matcher {
  readonly label: string;
  readonly operator: '=' | '!=' | '=~' | '!~';
  readonly value: string;
}

const SELECTOR = /([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?/y;
const MATCHER = /\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)/y;
const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const WORDS = new Set(['and', 'or', 'unless', 'offset', 'bool', 'by', 'without', 'on', 'ignoring', 'inf', 'nan']);
const DURATION = /\[[^\]]*\]|\boffset\s+\w+/g;

export function groupingLabels(expression: string): string[] {
  return [...expression.matchAll(GROUPING)].flatMap(([, list = '']) =>
    list
      .split(',')
      .map((label) => label.trim())
      .filter((label) => label !== ''),
  );
}

/** @throws Error for a matcher that it cannot read */
export function selectorsOf(expression: string): Selector[] {
  const text = expression.replaceAll(GROUPING, ' ').replaceAll(DURATION, ' ');
  const found: Selector[] = [];
  for (let at = 0; at < text.length; ) {
    SELECTOR.lastIndex = at;
    const [whole, metric, matchers] = SELECTOR.exec(text) ?? [];
    if (whole === undefined || metric === undefined) {
      at = afterOther(text, at);
      continue;
    }
    at += whole.length;
    const isFunction = matchers === undefined && /^\s*\(/.test(text.slice(at));
    if (!isFunction && !WORDS.has(metric.toLowerCase())) found.push({ metric, matchers: matchersOf(matchers ?? '') });
  }
  return found;
}

/** Past a number, whose exponent is no name, or one character. */
function afterOther(text: string, at: number): number {
  const [number] = /^\d[\d.]*(?:e[+-]?\d+)?/i.exec(text.slice(at)) ?? [];
  return at + (number?.length ?? 1);
}

function matchersOf(text: string): Matcher[] {
  const found: Matcher[] = [];
  for (let at = 0; text.slice(at).trim() !== ''; at = MATCHER.lastIndex) {
    MATCHER.lastIndex = at;
    const match = MATCHER.exec(text);
    if (match === null) throw new Error(`not a list of matchers: {${text}}`);
    const [, label = '', operator = '', value = ''] = match;
    found.push({ label, operator: operator as Matcher['operator'], value });
  }
  return found;
}
