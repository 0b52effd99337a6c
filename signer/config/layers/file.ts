// The file layer. An empty section sets nothing but counts as written: `signer_state:` without a table is a mistake.

import { renderPath, suggest, type Violation, yamlViolations } from '../../../common/command-line/violations.ts';
import { isRecord } from '../../../common/formats/is-record.ts';
import { decodeYaml, MAX_YAML_BYTES, parseStrictYaml, type StrictDocument } from '../../../common/formats/yaml.ts';
import { OPTION_PATHS, type OptionPath, optionWrittenAt, SECTION_PATHS } from '../options.ts';
import type { Layer, Setting } from './layer.ts';

const MAX_NAMED_OPTIONS = 4;

export function readConfigurationFile(bytes: Uint8Array, name: string): Layer {
  const text = decodeYaml(bytes, MAX_YAML_BYTES);
  if (text === undefined) {
    const remedy = `make it UTF-8 and at most ${MAX_YAML_BYTES} bytes`;
    return refusedLayer([{ path: 'the file', problem: 'is not UTF-8, or too large', remedy, origin: name }]);
  }
  const document = parseStrictYaml(text);
  if ('problems' in document) {
    const violations = yamlViolations(document.problems, name);
    if (document.document === undefined) return refusedLayer(violations);
    const layer = walk(document.document, name);
    return { ...layer, violations: [...violations, ...layer.violations] };
  }
  if (document.value === undefined || document.value === null) {
    const remedy = 'write the configuration, or leave -c out when flags and the environment have all of it';
    return refusedLayer([
      { path: 'the file', problem: 'sets nothing: it is empty, or all comments', remedy, origin: name },
    ]);
  }
  return walk(document, name);
}

export const EMPTY_LAYER: Layer = { settings: new Map(), sections: new Map(), violations: [] };

export function refusedLayer(violations: readonly Violation[]): Layer {
  return { ...EMPTY_LAYER, violations, unreadable: true };
}

function remedyFor(path: string, isList: boolean): string {
  const names = OPTION_PATHS.filter((option) => option.startsWith(`${path}.`)).map((option) =>
    option.slice(path.length + 1),
  );
  if (!isList || path === '' || names.length > MAX_NAMED_OPTIONS) return 'write its options under it, one a line';
  return `it is no list: write its options under it, one a line: ${names.map((name) => `${name}:`).join(', ')}`;
}

function walk(document: StrictDocument, name: string): Layer {
  const settings = new Map<OptionPath, Setting>();
  const sections = new Map<string, string>();
  const violations: Violation[] = [];
  const originAt = (path: readonly PropertyKey[]): string => `${name} line ${document.lineAt(path)}`;

  const visitSection = (section: unknown, at: readonly string[]): void => {
    if (section === undefined || section === null) return;
    if (typeof section !== 'object' || Array.isArray(section)) {
      const path = at.length === 0 ? 'the file' : renderPath(at);
      const remedy = remedyFor(at.join('.'), Array.isArray(section));
      violations.push({ path, problem: 'must be a section with options', remedy, origin: originAt(at) });
      return;
    }
    for (const [key, value] of Object.entries(section)) visitMember(value, [...at, key]);
  };
  const visitMember = (value: unknown, at: readonly string[]): void => {
    const path = at.join('.');
    // A key with a dot in it is not a path: `server.listen_port: 1` at the top would be two spellings of one option.
    const plain = at.every((part) => !part.includes('.'));
    const option = plain ? optionWrittenAt(path) : undefined;
    // An option that is a section too is written as either.
    if (option !== undefined && !(SECTION_PATHS.has(path) && isRecord(value))) {
      settings.set(option, { value, originAt: (within) => originAt([...at, ...within]) });
    } else if (plain && SECTION_PATHS.has(path)) {
      sections.set(path, originAt(at));
      visitSection(value, at);
    } else {
      violations.push({
        path: renderPath(at),
        problem: 'is not an option',
        remedy: adviceFor(at),
        origin: originAt(at),
      });
    }
  };

  visitSection(document.value, []);
  return { settings, sections, violations };
}

function adviceFor(at: readonly string[]): string {
  const known = [...OPTION_PATHS, ...SECTION_PATHS];
  return suggest(at.join('.'), known, 'remove it; docs/reference/configuration.md lists the options');
}
