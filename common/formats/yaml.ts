// YAML 1.2, strictly, for every file of the product. What lets two readers see two documents is refused, saying where,
// never what: the package's own messages quote the text around an error.

import {
  type Document,
  type DocumentOptions,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  type ParseOptions,
  parseAllDocuments,
  parseDocument,
  type SchemaOptions,
  visit,
  type YAMLError,
} from 'yaml';

export interface StrictDocument {
  readonly value: unknown;
  /** Of the deepest node that exists on the path. */
  lineAt(path: readonly PropertyKey[]): number;
}

export interface YamlProblem {
  readonly line: number;
  readonly problem: string;
}

/** Room for 100,000 keys named in policies. */
export const MAX_YAML_BYTES = 32 * 1024 * 1024;

const PROBLEMS: Partial<Record<YAMLError['code'], string>> = {
  DUPLICATE_KEY: 'a key is repeated',
  MULTIPLE_DOCS: 'there is more than one document',
  TAB_AS_INDENT: 'a tab is used as indentation: use spaces',
  BAD_INDENT: 'the indentation is wrong, or a bracket is not closed',
  NON_STRING_KEY: 'a key is not text',
  TAG_RESOLVE_FAILED: 'a tag is used',
  MISSING_CHAR: 'a character is missing, such as a closing quote or a comma',
  BLOCK_AS_IMPLICIT_KEY: 'two keys are on one line',
  MULTILINE_IMPLICIT_KEY: 'a key is indented below a value: it belongs further left, or the line above needs no value',
  BAD_SCALAR_START: 'a plain value starts with a reserved character: quote it',
  BAD_DQ_ESCAPE: 'a double-quoted text has an invalid escape',
};

/** `text`: every scalar is the text that stands there, quoted or not. */
type YamlScalars = 'typed' | 'text';

interface RefusedDocument {
  readonly problems: readonly YamlProblem[];
  /** When they leave no doubt what stands where: for what else is to be said of it. */
  readonly document?: StrictDocument;
}

/** The text of a file; undefined when it is larger, or not UTF-8. */
export function decodeYaml(bytes: Uint8Array, maxBytes: number): string | undefined {
  if (bytes.length > maxBytes) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export function parseStrictYaml(text: string, scalars: YamlScalars = 'typed'): StrictDocument | RefusedDocument {
  const lines = new LineCounter();
  return strictly(parseDocument(text, options(scalars, lines)), lines);
}

export function parseStrictYamlStream(
  text: string,
  scalars: YamlScalars = 'typed',
): (StrictDocument | RefusedDocument)[] {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, options(scalars, lines));
  return [...documents].map((document) => strictly(document, lines));
}

type Options = ParseOptions & DocumentOptions & SchemaOptions;

function options(scalars: YamlScalars, lineCounter: LineCounter): Options {
  return {
    version: '1.2',
    schema: scalars === 'text' ? 'failsafe' : 'core',
    resolveKnownTags: false,
    strict: true,
    uniqueKeys: true,
    stringKeys: true,
    prettyErrors: false,
    lineCounter,
    logLevel: 'error', // not 'silent': it would also drop the error for a second document
  };
}

function strictly(document: Document.Parsed, lines: LineCounter): StrictDocument | RefusedDocument {
  const lineOf = (offset: number): number => lines.linePos(offset).line;
  const isPlain = document.errors.every(({ code }) => code === 'DUPLICATE_KEY');
  const problems = [...syntaxProblems(document, lineOf), ...(isPlain ? forbiddenNodes(document, lineOf) : [])];
  const read = () => ({
    value: document.contents === null ? undefined : (document.toJS() as unknown),
    lineAt: (path: readonly PropertyKey[]) => lineOf(offsetAt(document, path)),
  });
  if (problems.length === 0) return read();
  return isPlain && !problems.some(isOfAlias) ? { problems, document: read() } : { problems };
}

const AN_ALIAS = 'an alias is used';
const isOfAlias = ({ problem }: YamlProblem): boolean => problem === AN_ALIAS;

function syntaxProblems(document: Document, lineOf: (offset: number) => number): YamlProblem[] {
  const found = [...document.errors, ...document.warnings];
  // A key that is indented too far is reported twice: what is wrong is the key's line.
  const indented = new Set(found.flatMap(({ code, pos }) => (code === 'MULTILINE_IMPLICIT_KEY' ? [pos[0]] : [])));
  const once = found.filter(({ code, pos }) => code !== 'BLOCK_AS_IMPLICIT_KEY' || !indented.has(pos[0]));
  const problems = once.map(({ code, pos }) => ({
    line: lineOf(code === 'MULTILINE_IMPLICIT_KEY' ? pos[1] : pos[0]),
    problem: PROBLEMS[code] ?? `the YAML is malformed (${code.toLowerCase()})`,
  }));
  if (document.directives?.yaml.explicit === true && document.directives.yaml.version !== '1.2') {
    problems.push({ line: 1, problem: 'the document declares another YAML version than 1.2' });
  }
  return problems;
}

function forbiddenNodes(document: Document, lineOf: (offset: number) => number): YamlProblem[] {
  const problems: YamlProblem[] = [];
  visit(document, {
    Alias: (_, node) => void problems.push({ line: lineOf(node.range?.[0] ?? 0), problem: AN_ALIAS }),
    Value: (_, node) => {
      const line = lineOf(node.range?.[0] ?? 0);
      if (node.anchor !== undefined) problems.push({ line, problem: 'an anchor is used' });
      // also one that says what it is anyway
      if (node.tag !== undefined) problems.push({ line, problem: 'a tag is used' });
    },
  });
  return problems;
}

/** A pair has its key's offset. */
function offsetAt(document: Document, path: readonly PropertyKey[]): number {
  let offset = isNode(document.contents) ? (document.contents.range?.[0] ?? 0) : 0;
  let node: unknown = document.contents;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === part);
      if (pair === undefined) return offset;
      offset = (isNode(pair.key) ? pair.key.range?.[0] : undefined) ?? offset;
      node = pair.value;
    } else {
      const item: unknown = isNode(node) && 'get' in node ? node.get(part, true) : undefined;
      if (!isNode(item)) return offset;
      offset = item.range?.[0] ?? offset;
      node = item;
    }
  }
  return offset;
}
