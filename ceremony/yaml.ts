// The value of a ceremony's file, as strictly as the enclave reads the same file (common/formats/yaml.ts). It may be a
// configuration that has a `ceremony` block.

import { MAX_YAML_BYTES, parseStrictYaml } from '../common/formats/yaml.ts';

export function readCeremonyValue(text: string): unknown {
  const value = readYaml(text);
  return isConfiguration(value) ? value.ceremony : value;
}

/** @throws Error that says what is wrong with the text, and on which line, without repeating it */
export function readYaml(text: string): unknown {
  if (text.length > MAX_YAML_BYTES) throw new Error('the file is too large');
  const document = parseStrictYaml(text);
  if (!('problems' in document)) return document.value;
  const [first] = document.problems;
  throw new Error(`the YAML is refused: line ${first?.line}: ${first?.problem}`);
}

function isConfiguration(value: unknown): value is { readonly ceremony: unknown } {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'ceremony');
}
