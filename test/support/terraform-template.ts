// Terraform's template language (HCL, String Templates), as far as our templates use it: `${path}`, `${index + N}`,
// `${jsonencode(path)}`, and `if` and `for` directives on lines of their own. Anything else is an error. Where a
// terraform is installed, a test holds this against it.

type Values = Readonly<Record<string, unknown>>;

export function renderTemplate(template: string, values: Values): string {
  const { text, rest } = render(template.split('\n'), values);
  if (rest.length > 0) throw new Error(`a directive without its beginning: ${rest[0]}`);
  return text.join('\n');
}

interface Rendered {
  readonly text: string[];
  /** From the directive on that ends the block. */
  readonly rest: readonly string[];
}

const FOR = /^%\{ for (\w+), (\w+) in (\w+) ~\}$/;
const IF = /^%\{ if (.+) ~\}$/;
const END = /^%\{ end(?:for|if) ~\}$/;

function render(lines: readonly string[], values: Values): Rendered {
  const text: string[] = [];
  let rest = lines;
  while (rest.length > 0) {
    const [line = '', ...after] = rest;
    if (END.test(line)) return { text, rest };
    const [, index = '', member = '', list = ''] = FOR.exec(line) ?? [];
    const condition = IF.exec(line)?.[1];
    if (list === '' && condition === undefined) {
      text.push(interpolated(line, values));
      rest = after;
      continue;
    }
    const rounds =
      condition === undefined
        ? (lookUp(list, values) as readonly unknown[]).map((one, at) => ({ ...values, [index]: at, [member]: one }))
        : isTrue(condition, values)
          ? [values]
          : [];
    for (const round of rounds) text.push(...render(after, round).text);
    rest = render(after, { ...values, [index]: 0, [member]: ANY }).rest.slice(1);
  }
  return { text, rest };
}

/** A member of a list that may be empty: its text is not used. */
const ANY = new Proxy({}, { get: (_target, name) => (name === Symbol.toPrimitive ? () => '' : '') });

function interpolated(line: string, values: Values): string {
  if (line.includes('%{')) throw new Error(`a directive that nobody renders: ${line}`);
  return line.replace(/\$\{([^}]+)\}/g, (_all, expression: string) => {
    const [, encoded] = /^jsonencode\(([\w.]+)\)$/.exec(expression) ?? [];
    if (encoded !== undefined) return JSON.stringify(lookUp(encoded, values));
    const [, name, addend] = /^([\w.]+)(?: \+ (\d+))?$/.exec(expression) ?? [];
    if (name === undefined) throw new Error(`an expression that nobody renders: ${expression}`);
    const value = lookUp(name, values);
    return String(addend === undefined ? value : Number(value) + Number(addend));
  });
}

function isTrue(condition: string, values: Values): boolean {
  const [, list] = /^length\((\w+)\) > 0$/.exec(condition) ?? [];
  if (list !== undefined) return (lookUp(list, values) as readonly unknown[]).length > 0;
  const [, not, flag] = /^(!?)(\w+)$/.exec(condition) ?? [];
  if (flag !== undefined) return (lookUp(flag, values) === true) !== (not === '!');
  const [, name, text] = /^(\w+) != "([^"]*)"$/.exec(condition) ?? [];
  if (name === undefined) throw new Error(`a condition that nobody renders: ${condition}`);
  return lookUp(name, values) !== text;
}

function lookUp(path: string, values: Values): unknown {
  let value: unknown = values;
  for (const name of path.split('.')) value = (value as Values)[name];
  if (value === undefined) throw new Error(`the template asks for ${path}, which it is not given`);
  return value;
}
