// A value that must not be shown. Only `reveal` gives the bytes, and `wipe` ends them.

import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';

/** A name that a POSIX shell can export. */
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export class Secret {
  readonly #bytes: Buffer;
  readonly #shown: string;

  /** @param shown stands for it in logs and in `--check` output; holds no part of it */
  constructor(text: string, shown = '[secret]') {
    this.#bytes = Buffer.from(text, 'utf8');
    this.#shown = shown;
  }

  /** The own bytes, UTF-8, not a copy: they become zeros when the secret is wiped. */
  reveal(): Buffer {
    return this.#bytes;
  }

  wipe(): void {
    this.#bytes.fill(0);
  }

  toString(): string {
    return this.#shown;
  }

  toJSON(): string {
    return this.#shown;
  }

  [inspect.custom](): string {
    return this.#shown;
  }
}

export function wipeSecrets(value: unknown): void {
  if (value instanceof Secret) value.wipe();
  else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) wipeSecrets(member);
}

export interface References {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text, or why it cannot be had. */
  readonly readFile: (path: string) => string | BrokenReference;
}

export interface SecretSources {
  /** Undefined in an enclave. */
  readonly references: References | undefined;
  /** What runs has no use for the secrets of unset variables. */
  readonly unsetIsFine?: boolean;
}

interface ReadSecret {
  readonly secret: Secret | BrokenReference;
  readonly variable?: string;
}

/** The text itself, or the variable or file it refers to. */
export function readSecret(text: string, sources: SecretSources): ReadSecret {
  if (text.startsWith('env:')) return readVariable(text.slice('env:'.length), sources);
  if (text.startsWith('file:')) return { secret: readFile(text.slice('file:'.length), sources) };
  return { secret: literalSlip(text) ?? new Secret(text) };
}

function readVariable(variable: string, { references, unsetIsFine = false }: SecretSources): ReadSecret {
  if (!VARIABLE_NAME.test(variable)) {
    const remedy = 'write env: and the name of the variable, without a space, $ or braces';
    return { secret: new BrokenReference('must be env:VAR_NAME with letters, digits and _ only', remedy) };
  }
  if (references === undefined) {
    const problem = `refers to the environment variable ${variable}, and an enclave has no environment`;
    return { secret: new BrokenReference(problem, 'keep tokens in signer_state, which no file holds'), variable };
  }
  const value = references.env[variable];
  if (value === undefined) {
    if (unsetIsFine) return { secret: new Secret(randomUUID()), variable };
    const problem = `refers to the environment variable ${variable}, which is unset`;
    const remedy = `export ${variable} for the process of the signer (of the package: in strongroom.env), or correct the name`;
    return { secret: new BrokenReference(problem, remedy), variable };
  }
  return { secret: new Secret(value), variable };
}

function readFile(path: string, { references, unsetIsFine = false }: SecretSources): Secret | BrokenReference {
  if (references === undefined) {
    const remedy = 'keep tokens in signer_state, which no file holds';
    return new BrokenReference('refers to a file, and an enclave has no files of its own', remedy);
  }
  if (unsetIsFine) return new Secret(randomUUID());
  const text = references.readFile(path);
  return text instanceof BrokenReference ? text : new Secret(text);
}

/** What other programs would replace by something secret, and this one would take as it stands. */
function literalSlip(text: string): BrokenReference | undefined {
  if (/^\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}]*\}|\([^)]*\))$/.test(text)) {
    const remedy = 'write env:VAR_NAME; a secret that does begin with $ can be given that way, too';
    return new BrokenReference('is a $ and a name, which nothing here expands: it would be the secret itself', remedy);
  }
  if (/^\s*(?:env|file):/i.test(text)) {
    const problem = 'begins with what looks like env: or file:, and would be the secret itself';
    return new BrokenReference(
      problem,
      'write env:VAR_NAME or file:/PATH, in lower case and without white space before',
    );
  }
  return undefined;
}

/** Undefined when a client can send the text as a secret. */
export function unsendable(text: string): BrokenReference | undefined {
  const problem = surrounded(text);
  if (problem !== undefined || !/\p{Cc}/u.test(text)) return problem;
  const remedy = 'make it of printable characters, for instance with `openssl rand -hex 32`';
  return new BrokenReference('has a control character, which no header can carry', remedy);
}

export function surrounded(text: string): BrokenReference | undefined {
  if (/[\r\n]$/.test(text)) {
    const remedy = 'take it from its source without: $(cat FILE) drops it, and printf %s, unlike echo, adds none';
    return new BrokenReference('has a line break at its end, which no client sends', remedy);
  }
  if (/^(["']).*\1$/s.test(text)) {
    return new BrokenReference('is written in quotes, which would be part of it', 'write it without the quotes');
  }
  if (!/^\s|\s$/.test(text)) return undefined;
  return new BrokenReference('has white space around it, which no client sends', 'write it without');
}

/** It leads nowhere (specification/operating.md#startup-failures, 3), or is a slip of the hand. */
export class BrokenReference {
  readonly problem: string;
  readonly remedy: string;

  constructor(problem: string, remedy: string) {
    this.problem = problem;
    this.remedy = remedy;
  }
}
