// A transcript as one page to print and sign: self-contained HTML without scripts, whose every text is escaped
// (formats/html.ts). It is made of a transcript that verifies, and says so when that one has not ended.

import { createHash } from 'node:crypto';
import { type Html, html, unsafeMarkup } from '../../formats/html.ts';
import type { Ceremony } from '../definition.ts';
import { headOf, isEnded, type Transcript } from './chain.ts';
import type { Entry, PersonEntry, StartEntry } from './entries.ts';
import { ceremonyOf, ceremonyRegister } from './meaning.ts';
import { pageStyle } from './page-style.ts';

/** @param transcript one that begins with its start */
export function transcriptPage(transcript: Transcript): string {
  const [start] = transcript.entries;
  if (start?.entry !== 'start') throw new Error('a transcript that was not verified');
  const people = transcript.entries.filter((entry) => entry.entry === 'person');
  // CSP level 3: the page may apply this style, and load or run nothing.
  const style = pageStyle(grouped(headOf(transcript)));
  const styleDigest = createHash('sha256').update(style).digest('base64');
  const body = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${styleDigest}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${start.title}</title>
<style>${unsafeMarkup(style)}</style>
</head>
<body>
${heading(transcript, start)}
${headBox(transcript)}
${ceremonySection(start, people)}
${registersSection(transcript.entries)}
${filesSection(transcript.entries)}
${recordSection(transcript)}
${isEnded(transcript) ? signatures(people) : html``}
</body>
</html>
`;
  return body.toString();
}

/** The digits stand in groups of eight, which are compared and copied without losing the place. */
export function grouped(digest: string): string {
  return (digest.match(/.{1,8}/g) ?? []).join(' ');
}

function heading(transcript: Transcript, start: StartEntry): Html {
  const times = transcript.entries.flatMap((entry) => ('at' in entry ? [entry.at] : []));
  const place = start.place === undefined ? html`` : html`<p>Place: ${start.place}</p>`;
  const draft = isEnded(transcript)
    ? html``
    : html`<p class="draft">DRAFT: this record has not ended. Do not sign it.</p>`;
  return html`<h1>${start.title}</h1>
<p>Record of a custody ceremony, from ${start.at} to ${times.at(-1) ?? start.at}, ${transcript.entries.length} lines</p>
${place}
${draft}`;
}

function headBox(transcript: Transcript): Html {
  return html`<section class="head">
<h2>Head of the record (SHA-256 of its last line)</h2>
<p class="digest">${grouped(headOf(transcript))}</p>
<p>Whoever has the file of this record compares: <code>strongroom ceremony transcript verify FILE --head HEX</code>.
One changed character anywhere in the record is another head.</p>
</section>`;
}

function ceremonySection(start: StartEntry, people: readonly PersonEntry[]): Html {
  const ceremony: Ceremony = ceremonyOf(start);
  const holder = (recipient: string): string => people.find((person) => person.recipient === recipient)?.name ?? '–';
  return html`<section>
<h2>Ceremony</h2>
<p>Generation ${ceremony.generation}: any ${ceremony.kmsThreshold} of ${ceremony.kmsKeys.length} custody keys open the master key.</p>
<dl>
<dt>Digest (SHA-384)</dt><dd class="digest">${grouped(start.ceremony_digest_sha384)}</dd>
<dt>PCR17 of an image with this ceremony</dt><dd class="digest">${grouped(ceremonyRegister(ceremony))}</dd>
</dl>
<table>
<thead><tr><th>Custody key</th><th>ARNs</th></tr></thead>
<tbody>${keyRows(ceremony.kmsKeys, '')}${keyRows(ceremony.retiredKmsKeys, 'retired ')}</tbody>
</table>
<p>Any one of these recipients alone can open the root token:</p>
<table>
<thead><tr><th>Recipient</th><th>age public key</th><th>Participant</th></tr></thead>
<tbody>${ceremony.rootTokenRecipients.map(
    (recipient, at) =>
      html`<tr><td>${at + 1}</td><td class="digest">${recipient}</td><td>${holder(recipient)}</td></tr>`,
  )}</tbody>
</table>
</section>`;
}

function keyRows(keys: Ceremony['kmsKeys'], prefix: string): Html[] {
  return keys.map(
    ({ arns }, at) =>
      html`<tr><td>${prefix}${at + 1}</td><td class="digest">${arns.map((arn) => html`<div>${arn}</div>`)}</td></tr>`,
  );
}

function registersSection(entries: readonly Entry[]): Html {
  const recorded = entries.filter((entry) => entry.entry === 'pcrs');
  if (recorded.length === 0) return html``;
  const rows = recorded.flatMap(({ number, registers }) =>
    Object.entries(registers)
      .sort(([a], [b]) => Number(a.slice(3)) - Number(b.slice(3)))
      .map(
        ([name, value]) => html`<tr><td>${number}</td><td>${name}</td><td class="digest">${grouped(value)}</td></tr>`,
      ),
  );
  return html`<section>
<h2>PCR values of the image</h2>
<table><thead><tr><th>Line</th><th>Register</th><th>Value (SHA-384)</th></tr></thead><tbody>${rows}</tbody></table>
</section>`;
}

function filesSection(entries: readonly Entry[]): Html {
  const files = entries.filter((entry) => entry.entry === 'file');
  if (files.length === 0) return html``;
  const rows = files.map(
    ({ number, name, about, bytes, sha256 }) =>
      html`<tr><td>${number}</td><td>${name}<br>${about}</td><td>${bytes}</td><td class="digest">${grouped(sha256)}</td></tr>`,
  );
  return html`<section>
<h2>Files</h2>
<table><thead><tr><th>Line</th><th>File</th><th>Bytes</th><th>SHA-256</th></tr></thead><tbody>${rows}</tbody></table>
</section>`;
}

function recordSection({ entries, digests }: Transcript): Html {
  const rows = entries.map(
    (entry, at) =>
      html`<tr><td>${entry.number}</td><td class="time">${'at' in entry ? entry.at : ''}</td><td class="said">${said(entry)}</td><td class="digest">${digests[at]?.slice(0, 8) ?? ''}</td></tr>`,
  );
  return html`<section>
<h2>Record</h2>
<table class="record"><thead><tr><th>Line</th><th>Time</th><th>What</th><th>Digest begins</th></tr></thead><tbody>${rows}</tbody></table>
</section>`;
}

function said(entry: Entry): Html {
  switch (entry.entry) {
    case 'start':
      return html`The record begins: ${entry.title}`;
    case 'person':
      return html`<b>${entry.name}</b>, ${description(entry)}`;
    case 'statement':
      return html`<b>${entry.by}</b>: ${entry.text}`;
    case 'file':
      return html`File ${entry.name}: ${entry.about}`;
    case 'pcrs':
      return html`PCR values of the image: ${Object.keys(entry.registers).length} registers`;
    case 'end':
      return html`The record ends`;
  }
}

function description({ role, organization, identified_by: identifiedBy, recipient }: PersonEntry): string {
  const parts = [
    role,
    organization,
    identifiedBy === undefined ? undefined : `identified by: ${identifiedBy}`,
    recipient === undefined ? undefined : `holds the identity of ${recipient}`,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

function signatures(people: readonly PersonEntry[]): Html {
  const blocks = people.map(
    (person) => html`<div class="signature">
<p><b>${person.name}</b>, ${person.role}${person.organization === undefined ? '' : `, ${person.organization}`}</p>
<div class="lines"><span class="line">Signature</span><span class="line short">Date and time</span><span class="line short">Last 8 digits of the head, by hand</span></div>
</div>`,
  );
  return html`<section>
<h2>Signatures</h2>
<p>I was there. This page says what happened. I read the head of the record on the screen, and it is the one above.</p>
${blocks}
</section>`;
}
