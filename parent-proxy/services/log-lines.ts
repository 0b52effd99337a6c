// Lines of the enclave's log are untrusted text: each becomes one JSON object with every control character escaped, so
// that no line passes for another's, hides, or speaks to a terminal.

import { MAX_LOG_LINE_BYTES, MAX_WRITTEN_LOG_LINE_BYTES } from '../limits.ts';

type LineForm = 'json' | 'text' | 'truncated';

interface LineReader {
  push(bytes: Buffer): string;
  rest(): string;
}

const LF = 0x0a;
/** What stays of a line that is too long, at each attempt to make it fit. */
const KEPT_PART = 0.9;
/** Controls, and what hides or turns text: zero-width and bidirectional formats, line and paragraph separators. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export function createLineReader(onLine: (form: LineForm) => void): LineReader {
  let parts: Buffer[] = [];
  let length = 0;
  let truncated = false;

  const keep = (bytes: Buffer): void => {
    const room = MAX_LOG_LINE_BYTES - length;
    if (bytes.length > room) truncated = true;
    if (room <= 0 || bytes.length === 0) return;
    parts.push(Buffer.from(bytes.subarray(0, room))); // a copy: a part must not hold the whole read
    length += Math.min(bytes.length, room);
  };
  const finish = (): string => {
    const line = Buffer.concat(parts).toString('utf8').trim();
    const cut = truncated;
    parts = [];
    length = 0;
    truncated = false;
    if (line === '') return '';
    const { form, wrapped } = wrap(line, cut);
    onLine(form);
    return wrapped;
  };
  return {
    push(bytes) {
      let lines = '';
      let start = 0;
      for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
        keep(bytes.subarray(start, end));
        lines += finish();
        start = end + 1;
      }
      keep(bytes.subarray(start));
      return lines;
    },
    rest: finish,
  };
}

interface Wrapped {
  readonly form: LineForm;
  readonly wrapped: string;
}

function wrap(line: string, truncated: boolean): Wrapped {
  const whole = truncated ? undefined : wrapWhole(line);
  return whole !== undefined && fits(whole.wrapped) ? whole : wrapCut(line);
}

function wrapWhole(line: string): Wrapped {
  // Parsing only proves that the record is one object and ends where it ends.
  if (isObject(line)) return { form: 'json', wrapped: `{"source":"enclave","record":${escaped(line)}}\n` };
  return { form: 'text', wrapped: `{"source":"enclave","text":${quoted(line)}}\n` };
}

/** As much of its beginning as fits: how much its escapes take is known when it is written. */
function wrapCut(line: string): Wrapped {
  for (let kept = line; ; kept = kept.slice(0, Math.floor(kept.length * KEPT_PART))) {
    const wrapped = `{"source":"enclave","truncated":true,"text":${quoted(kept)}}\n`;
    if (fits(wrapped)) return { form: 'truncated', wrapped };
  }
}

function fits(wrapped: string): boolean {
  return Buffer.byteLength(wrapped) <= MAX_WRITTEN_LOG_LINE_BYTES;
}

function isObject(line: string): boolean {
  if (!line.startsWith('{')) return false;
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

function quoted(text: string): string {
  return escaped(JSON.stringify(text));
}

/** Raw C0 controls stand between tokens only; the others stand in strings, where an escape says the same. */
function escaped(json: string): string {
  return json.replaceAll(UNSEEN, (character) => {
    if (character < ' ') return ' ';
    return character
      .split('') // UTF-16 units, as JSON writes them
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
  });
}
