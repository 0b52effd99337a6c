// A transcript as one page to print and sign: self-contained HTML without scripts, whose every text is escaped
// (common/formats/html.ts). It is made of a transcript that verifies, and says so when that one has not ended.

import type { Attested } from '../../common/attestation/key-evidence.ts';
import { type Html, html, htmlPage } from '../../common/formats/html.ts';
import type { Ceremony } from '../definition.ts';
import { headOf, isEnded, type Transcript } from './chain.ts';
import { lackingIn, type Person, peopleIn } from './day.ts';
import type { Entry, PersonEntry, StartEntry } from './entries.ts';
import { ceremonyOf, ceremonyRegister } from './meaning.ts';
import type { RecordedOrigin } from './origin.ts';

export function transcriptPage(transcript: Transcript, origins: readonly RecordedOrigin[]): string {
  const [start] = transcript.entries;
  if (start?.entry !== 'start') throw new Error('a transcript that was not verified');
  const people = peopleIn(transcript.entries);
  const body = html`${heading(transcript, start)}
${lackingBox(transcript)}
${headBox(transcript)}
${ceremonySection(start, people)}
${registersSection(transcript.entries)}
${origins.map(originSection)}
${filesSection(transcript.entries)}
${recordSection(transcript)}
${isEnded(transcript) ? signatures(people) : html``}`;
  return htmlPage(html, { title: start.title, style: pageStyle(grouped(headOf(transcript))), body });
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

function lackingBox(transcript: Transcript): Html {
  const lacking = lackingIn(transcript.entries);
  if (lacking.length === 0) return html``;
  const title = isEnded(transcript) ? 'INCOMPLETE: what this record lacks' : 'What this record still lacks';
  return html`<section class="lacking">
<h2>${title}</h2>
<ul>${lacking.map((sentence) => html`<li>${sentence}</li>`)}</ul>
</section>`;
}

function ceremonySection(start: StartEntry, people: readonly Person[]): Html {
  const ceremony: Ceremony = ceremonyOf(start);
  const holder = (recipient: string): string => people.find((person) => person.recipient === recipient)?.name ?? '–';
  return html`<section>
<h2>Ceremony</h2>
<p>Generation ${ceremony.generation}, for ${start.signers === 'enclaves' ? 'enclaves' : 'ordinary hosts'}: any ${ceremony.kmsThreshold} of ${ceremony.kmsKeys.length} custody keys open the master key.</p>
<dl>
<dt>Digest (SHA-384)</dt><dd class="digest">${grouped(start.ceremony_digest_sha384)}</dd>
<dt>PCR17 of an image with this ceremony</dt><dd class="digest">${grouped(ceremonyRegister(ceremony))}</dd>
</dl>
<table>
<thead><tr><th>Custody key</th><th>ARNs</th><th>Custodian</th></tr></thead>
<tbody>${keyRows(ceremony.kmsKeys, '', people)}${keyRows(ceremony.retiredKmsKeys, 'retired ', [])}</tbody>
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

function keyRows(keys: Ceremony['kmsKeys'], prefix: string, people: readonly Person[]): Html[] {
  const custodian = (number: number) => people.find(({ custodyKeys }) => custodyKeys.includes(number))?.name ?? '–';
  return keys.map(
    ({ arns }, at) =>
      html`<tr><td>${prefix}${at + 1}</td><td class="digest">${arns.map((arn) => html`<div>${arn}</div>`)}</td><td>${custodian(at + 1)}</td></tr>`,
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

function originSection({ line, entry, links, rootToken }: RecordedOrigin): Html {
  const registers = [0, 1, 2, 8, 16, 17];
  const block = (title: string, of: Attested & { readonly generation: number; readonly ceremony: string }): Html =>
    html`<h3>${title}</h3>
<dl><dt>When, in which generation</dt><dd>${new Date(of.madeAt).toISOString()}, generation ${of.generation}</dd>
<dt>By the enclave</dt><dd class="digest">${of.moduleId}</dd>
<dt>Ceremony (SHA-384)</dt><dd class="digest">${grouped(of.ceremony)}</dd>
${registers.map((index) => {
  const value = of.pcrs.get(index)?.toString('hex');
  return value === undefined ? html`` : html`<dt>PCR${index}</dt><dd class="digest">${grouped(value)}</dd>`;
})}</dl>`;
  return html`<section>
<h2>Master key (line ${line})</h2>
<p>Deployment ${entry.deployment.id}, network ${entry.deployment.network}. Documents of enclaves prove what follows:
the images are of the PCR values above, and the ceremony is this one.</p>
<dl><dt>Record (SHA-384)</dt><dd class="digest">${grouped(entry.record)}</dd></dl>
${links.map((link) => block(`${link.counter}. ${link.purpose === 'made' ? 'It was made' : 'It was wrapped again'}`, link))}
${rootToken === undefined ? html`` : block(`The root token was encrypted, SHA-384 ${rootToken.content}`, rootToken)}
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
    case 'master_key':
      return html`Evidence of the master key of ${entry.deployment.id}`;
    case 'end':
      return html`The record ends${entry.complete ? '' : ', incomplete'}`;
  }
}

function description({
  role,
  organization,
  identified_by: identifiedBy,
  recipient,
  custody_key: key,
}: PersonEntry): string {
  const parts = [
    role,
    organization,
    identifiedBy === undefined ? undefined : `identified by: ${identifiedBy}`,
    recipient === undefined ? undefined : `holds the identity of ${recipient}`,
    key === undefined ? undefined : `custodian of custody key ${key}`,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

function signatures(people: readonly Person[]): Html {
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

// On A4 and US letter and on a screen: no block of a person torn apart between sheets. Every sheet has the head at its
// foot.

function pageStyle(head: string): string {
  if (!/^[0-9a-f ]+$/.test(head)) throw new Error('a head is hex');
  const foot = 'font: 7.5pt ui-monospace, "DejaVu Sans Mono", monospace;';
  return `${STYLE}
@page { @bottom-left { content: "Head ${head}"; ${foot} }
  @bottom-right { content: counter(page) " of " counter(pages); ${foot} } }
`;
}

const STYLE = `
@page { margin: 15mm 14mm; }
* { box-sizing: border-box; }
body { font: 10.5pt/1.4 system-ui, "Helvetica Neue", Arial, sans-serif; color: #000; background: #fff;
  max-width: 190mm; margin: 0 auto; padding: 4mm; }
h1 { font-size: 17pt; margin: 0 0 2mm; overflow-wrap: anywhere; }
h2 { font-size: 11.5pt; margin: 6mm 0 1.5mm; break-after: avoid; } h3 { font-size: 10.5pt; margin: 3mm 0 1mm; overflow-wrap: anywhere; }
p { margin: 0 0 1.5mm; overflow-wrap: anywhere; }
dl { margin: 0; } dt { font-weight: 600; } dd { margin: 0 0 1.5mm; }
.digest, code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 8.5pt;
  overflow-wrap: anywhere; }
@media print { code { white-space: nowrap; } }
.head { border: 0.6mm solid #000; padding: 2mm 3mm; margin: 3mm 0; break-inside: avoid; }
.head h2 { margin-top: 0; } .head .digest { font-size: 10.5pt; }
ul { margin: 0 0 1.5mm; padding-left: 5mm; }
.draft, .lacking { border: 0.6mm solid #000; padding: 1.5mm 3mm; } .draft { font-weight: 700; }
.lacking { margin: 3mm 0; } .lacking h2 { margin-top: 0; }
table { width: 100%; border-collapse: collapse; margin: 0 0 2mm; }
th, td { border-bottom: 0.2mm solid #888; padding: 0.8mm 2mm 0.8mm 0; text-align: left; vertical-align: top; }
thead { display: table-header-group; } tr { break-inside: avoid; }
td { overflow-wrap: anywhere; }
td:first-child, .time { white-space: nowrap; font-variant-numeric: tabular-nums; }
.said { white-space: pre-wrap; }
.signature { break-inside: avoid; margin: 4mm 0 0; }
.lines { display: flex; gap: 6mm; margin-top: 11mm; }
.line { flex: 2; border-top: 0.3mm solid #000; font-size: 8pt; padding-top: 0.6mm; }
.line.short { flex: 1; }
`;
