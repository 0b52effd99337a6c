// JSON of which a schema decides: text that is none is undefined, which no schema takes.

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
