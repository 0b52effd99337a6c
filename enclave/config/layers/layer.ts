// One layer of the configuration: what it sets, and where each value was written. Flags and the environment bring text;
// `readText` turns it into the value the file would hold, so that one schema judges every layer.

import type { Violation } from '../../../command-line/violations.ts';
import { parseStrictYaml } from '../../../formats/yaml.ts';
import { type OptionPath, optionAt } from '../options.ts';

export interface Setting {
  readonly value: unknown;
  /** Where the value, or the member of it at `path`, was written. */
  originAt(path: readonly PropertyKey[]): string;
}

export interface Layer {
  readonly settings: ReadonlyMap<OptionPath, Setting>;
  /**
   * Members of object-valued options that are set one by one. They go over the whole object, whichever layer that comes
   * from.
   */
  readonly members?: readonly MemberSetting[];
  /** Sections that are written down, even when they hold no option, and where. */
  readonly sections: ReadonlyMap<string, string>;
  readonly violations: readonly Violation[];
  /** What the layer sets is not known. */
  readonly unreadable?: true;
}

export interface MemberSetting extends Setting {
  readonly option: OptionPath;
  readonly within: readonly string[];
}

/**
 * The value of a text, or undefined when an object is not well-formed JSON. Text that is no integer or boolean stays
 * text, which the schema then refuses: an empty text is never an integer, a boolean or a choice, but is an empty list.
 */
export function readText(path: OptionPath, text: string): { readonly value: unknown } | undefined {
  switch (optionAt(path).kind.form) {
    case 'text':
      return { value: text };
    case 'integer':
      return { value: /^-?[0-9]{1,15}$/.test(text) ? Number(text) : text };
    case 'boolean':
      return { value: text === 'true' ? true : text === 'false' ? false : text };
    case 'list':
    case 'repeated':
      return { value: text.trim() === '' ? [] : text.split(',').map((item) => item.trim()) };
    case 'object':
      return readObject(text);
  }
}

/** JSON is YAML 1.2, and the strict reader refuses what JSON.parse lets pass: repeated keys. */
export function readObject(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  const document = parseStrictYaml(text);
  return 'problems' in document ? undefined : { value: document.value };
}
