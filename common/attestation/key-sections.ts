// What the evidence of a master key proves, as sections of a report: who made the key, when, by which measurements, in
// which generation, and who wrapped it since. A link is here only when its document is authentic.

import type { Fields, PageSection } from '../command-line/report-page.ts';
import { bounded } from '../command-line/text.ts';
import type { VerifiedKeyLink } from './key-evidence.ts';
import type { VerifiedRow } from './row-evidence.ts';
import type { Origin } from './shown-evidence.ts';

const MAX_CHARACTERS = 256;
/** Those that say which enclave it was. */
const SHOWN_PCRS = [0, 1, 2, 8, 16, 17];

export function keySections({ links, rows }: Pick<Origin, 'links' | 'rows'>): PageSection[] {
  return [
    ...links.map((link) => ({
      title: `${link.counter}. the master key was ${link.purpose === 'made' ? 'made' : 'wrapped again'}`,
      fields: fieldsOf(link, ['record', { exact: link.record }]),
    })),
    ...rows.map((row) => ({
      title: row.purpose === 'root_token' ? 'the root token was encrypted' : 'a seal was found removed',
      fields: fieldsOf(row, ['content', { exact: row.content }]),
    })),
  ];
}

function fieldsOf(stated: VerifiedKeyLink | VerifiedRow, own: Fields[number]): Fields {
  const { madeAt, generation, moduleId, ceremony, pcrs } = stated;
  return [
    ['at', new Date(madeAt).toISOString().replace('.000Z', 'Z')],
    ['generation', generation],
    ['module', bounded(moduleId, MAX_CHARACTERS)],
    ['ceremony digest', { exact: ceremony }],
    own,
    ...SHOWN_PCRS.flatMap((index) => {
      const value = pcrs.get(index)?.toString('hex');
      return value === undefined ? [] : [[`PCR${index}`, { exact: value }] as const];
    }),
  ];
}

export function deploymentWords({ deployment: { network, id } }: Pick<VerifiedKeyLink, 'deployment'>): string {
  return `${bounded(id, MAX_CHARACTERS)}, on the network ${bounded(network, MAX_CHARACTERS)}`;
}
