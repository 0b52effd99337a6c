// A configuration in the making: what is set, where it was given (so that a refusal names Web3Signer's option and not
// ours), and what is refused or said.

import type { Violation } from '../../common/command-line/violations.ts';
import type { OptionWarning } from './given.ts';
import type { YamlSection } from './yaml-text.ts';

export class Translation {
  readonly config: YamlSection = {};
  readonly violations: Violation[] = [];
  readonly warnings: OptionWarning[] = [];
  readonly #origins = new Map<string, string>();

  set(path: string, value: unknown, origin: string): void {
    const names = path.split('.');
    const last = names.pop() ?? path;
    let section = this.config;
    for (const name of names) {
      section[name] ??= {};
      section = section[name] as YamlSection;
    }
    section[last] = value;
    this.#origins.set(path, origin);
  }

  refuse(violation: Violation): void {
    this.violations.push(violation);
  }

  hasRefused(path: string): boolean {
    return this.violations.some((violation) => violation.path === path);
  }

  warn(at: string, says: string): void {
    this.warnings.push({ at, says });
  }

  /** Where the value was given that a violation of the configuration is about, if it came from here. */
  originOf(violation: Violation): string | undefined {
    const paths = [...this.#origins.keys()].filter(
      (path) =>
        `${violation.path}.`.startsWith(`${path}.`) ||
        violation.path.startsWith(`${path}[`) ||
        path.startsWith(`${violation.path}.`),
    );
    return this.#origins.get(paths[0] ?? '');
  }
}
