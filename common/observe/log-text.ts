// Text form of one JSON log line: `time LEVEL module: message name=value …`. No value can pass for another field or
// start a new line.

const COLORS: Readonly<Record<string, string>> = {
  trace: '\u001B[90m',
  debug: '\u001B[36m',
  info: '\u001B[32m',
  warn: '\u001B[33m',
  error: '\u001B[31m',
  fatal: '\u001B[31m',
};
const RESET = '\u001B[0m';
const PLAIN_VALUE = /^[\w.:/@+,%\-[\]]+$/;

export function textLine(jsonLine: string, color: boolean): string {
  const { time, level, module, msg, ...fields } = JSON.parse(jsonLine) as Record<string, unknown>;
  const word = String(level).toUpperCase().padEnd(5);
  const painted = color ? `${COLORS[String(level)] ?? ''}${word}${RESET}` : word;
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${textValue(value)}`);
  return `${String(time)} ${painted} ${String(module)}: ${oneLine(String(msg ?? ''))}${rest.join('')}\n`;
}

function textValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return PLAIN_VALUE.test(text) ? text : JSON.stringify(text);
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ');
}
