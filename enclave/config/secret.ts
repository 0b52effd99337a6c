// A value of the configuration that must not be shown: a token, or a connection URL that carries a password. It prints as
// its shown form wherever it is written, serialised or inspected; only `reveal` gives the bytes, and `wipe` ends them.

import { inspect } from 'node:util';

/** A name that a POSIX shell can export. */
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export class Secret {
  readonly #bytes: Buffer;
  readonly #shown: string;

  /** @param shown what stands for the secret in logs and in `--check` output; holds no part of it. */
  constructor(text: string, shown = '[secret]') {
    this.#bytes = Buffer.from(text, 'utf8');
    this.#shown = shown;
  }

  /** The secret's own bytes, UTF-8, not a copy: they become zeros when the secret is wiped. */
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

/** A reference `env:VAR_NAME` that leads nowhere (service.md, startup failure 3). */
export class BrokenReference {
  readonly problem: string;

  constructor(problem: string) {
    this.problem = problem;
  }
}

/**
 * The secret that a text of the configuration stands for: the text itself, or the variable it refers to.
 * @param env undefined where there is none: in an enclave
 */
export function readSecret(
  text: string,
  env: Readonly<Record<string, string | undefined>> | undefined,
): { readonly secret: Secret | BrokenReference; readonly variable?: string } {
  if (!text.startsWith('env:')) return { secret: new Secret(text) };
  const variable = text.slice('env:'.length);
  if (!VARIABLE_NAME.test(variable)) {
    return { secret: new BrokenReference('must be env:VAR_NAME with letters, digits and _ only') };
  }
  if (env === undefined) {
    const problem = `refers to the environment variable ${variable}, and an enclave has no environment`;
    return { secret: new BrokenReference(problem), variable };
  }
  const value = env[variable];
  if (value === undefined) {
    return { secret: new BrokenReference(`refers to the environment variable ${variable}, which is unset`), variable };
  }
  return { secret: new Secret(value), variable };
}
