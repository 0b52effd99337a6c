// What the page of a master key was made of, on the page itself: the status with the evidence, and which key it had to
// be, so that `operator verify` judges it again from the page alone. A page is anybody's: its own terms are a claim.

import { z } from 'zod';
import type { DocumentProvider } from '../../../common/attestation/contract.ts';
import type { Html } from '../../../common/formats/html.ts';
import { type StatusEvidence, statusIn } from '../evidence-file.ts';
import type { KeyFinding, KeyTerms } from '../key-report.ts';
import { sha256Of } from '../report.ts';
import {
  asObject,
  hex,
  moment,
  optional,
  optionNames,
  readBlock,
  registers,
  text,
  valuesOf,
  writeBlock,
} from './embedded.ts';
import type { KeyPageContext } from './page-context.ts';

const FORMAT = 'strongroom master key page v1';

const schema = z.strictObject({
  format: z.literal(FORMAT),
  subject: text,
  made_at: moment,
  given: z.array(z.tuple([text, text])).max(16),
  parent_writes_tables: z.boolean(),
  parent_reads: optionNames.exactOptional(),
  terms: z
    .strictObject({ network: text, deployment: text, ceremonies: z.array(hex), images: registers })
    .exactOptional(),
  sha256: hex,
  status: z.base64(),
});

type ByParent = Pick<KeyFinding, 'parentWritesTables' | 'parentReads'>;

export function embeddedKey(context: KeyPageContext, { parentWritesTables, parentReads }: ByParent): Html {
  const { subject, madeAt, given, terms, status } = context;
  const block: z.output<typeof schema> = {
    ...{
      format: FORMAT,
      subject,
      made_at: madeAt,
      given: given.map(([name, value]): [string, string] => [name, value]),
    },
    parent_writes_tables: parentWritesTables,
    ...optional('parent_reads', parentReads && [...parentReads]),
    ...optional('terms', terms === undefined ? undefined : writtenTerms(terms)),
    sha256: sha256Of(status),
    status: status.toString('base64'),
  };
  return writeBlock(block);
}

function writtenTerms({ deployment, ceremonies, images }: KeyTerms) {
  const { network, id } = deployment;
  return { network, deployment: id, ceremonies: [...ceremonies], images: asObject(images) };
}

export interface KeptKey {
  readonly file: StatusEvidence;
  readonly context: KeyPageContext;
  /** As the page says it. */
  readonly byParent: ByParent;
}

/** @returns undefined for a page of something else; text: why it is refused */
export function readKeyPage(page: string, provider: DocumentProvider): KeptKey | string | undefined {
  const block = readBlock(page);
  if (!block.ok || (block.value as { format?: unknown } | undefined)?.format !== FORMAT) return undefined;
  const read = schema.safeParse(block.value);
  if (!read.success) return 'its evidence has another form than a report writes';
  const { data } = read;
  const status = Buffer.from(data.status, 'base64');
  if (sha256Of(status) !== data.sha256) return 'its evidence was altered: it has another SHA-256';
  const file = statusIn(status, 'its evidence');
  if (file === undefined) return 'its evidence is no status of a signer';
  const terms: KeyTerms | undefined =
    data.terms === undefined
      ? undefined
      : {
          deployment: { network: data.terms.network, id: data.terms.deployment },
          ceremonies: data.terms.ceremonies,
          images: valuesOf(data.terms.images),
        };
  const { subject, made_at: madeAt, given, parent_writes_tables: parentWritesTables, parent_reads: parentReads } = data;
  const context = { subject, provider, madeAt, given, terms, status };
  return { file, context, byParent: { parentWritesTables, parentReads } };
}
