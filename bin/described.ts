// What the programs say of themselves, for help and completion: read from descriptions.json, which `make docs` writes
// from their sources and a test holds to them. The schemas behind the options of the server alone take longer to load
// than a person who presses the Tab key waits. A release says less of what it cannot do
// (tools/release/absent/described.ts).

import type { Description } from '../common/command-line/command.ts';

export async function described(): Promise<Description> {
  const { default: written } = await import('./descriptions.json', { with: { type: 'json' } });
  return written as unknown as Description;
}
