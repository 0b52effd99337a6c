// A file as a value: YAML 1.2 (and so JSON), strictly. It refuses what lets two readers see two values: repeated keys, aliases, tags of
// its own, several documents. A ceremony's file may be a configuration that has a `ceremony` block.

import { parseDocument } from 'yaml';

/** The largest ceremony (255 keys of 64 replicas) is well under 2 MiB; a configuration around it may be larger. */
const MAX_FILE_BYTES = 32 * 1024 * 1024;

/** @throws Error that says what is wrong with the text, without repeating it */
export function readCeremonyValue(text: string): unknown {
  const value = readYaml(text);
  return isConfiguration(value) ? value.ceremony : value;
}

/** @throws Error that says what is wrong with the text, without repeating it */
export function readYaml(text: string): unknown {
  if (text.length > MAX_FILE_BYTES) throw new Error('the file is too large');
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    resolveKnownTags: false,
    uniqueKeys: true,
    stringKeys: true,
    prettyErrors: false,
    logLevel: 'error',
  });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) throw new Error(`the YAML is refused: ${problem.code.toLowerCase().replaceAll('_', ' ')}`);
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    throw new Error('the YAML is refused: it has an alias');
  }
}

function isConfiguration(value: unknown): value is { readonly ceremony: unknown } {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'ceremony');
}
