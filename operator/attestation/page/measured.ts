// What the enclave measured beside its image: configuration and ceremony, the registers of the document and the digests
// that the reference file names, through the one formula that joins them.

import { CEREMONY_PCR, CONFIGURATION_PCR } from '../../../common/attestation/contract.ts';
import type { Html } from '../../../common/formats/html.ts';
import { extendedOnce } from '../../../common/formats/register.ts';
import { decisive, type Findings } from '../report.ts';
import { html } from './html.ts';
import type { PageContext } from './page-context.ts';

export function measuredSection(findings: Findings, { record }: PageContext): Html {
  const verdict = decisive(findings);
  const registers = verdict.authentic ? verdict.document.pcrs : undefined;
  const row = (name: string, index: number, digest: string | undefined) => {
    const register = registers?.get(index)?.toString('hex');
    return html`<tr><th scope="row">${name}</th><td>${digest === undefined ? 'not in the reference file' : halves(digest)}</td>
<td>PCR${index}: ${relation(digest, register, registers !== undefined)}</td></tr>`;
  };
  return html`<h2>Configuration and ceremony</h2>
<p class="note">PCR = SHA-384(48 zero bytes ‖ digest). The digest of a configuration is <code>sha384sum</code> of its file;
that of a ceremony, and its canonical bytes, are printed by <code>strongroom ceremony plan</code>.</p>
<div class="scroll"><table><thead><tr><th>Measured</th><th>Digest, SHA-384</th><th>The register of the document</th></tr></thead>
<tbody>${row('Configuration', CONFIGURATION_PCR, record?.configurationDigest)}
${row('Ceremony', CEREMONY_PCR, record?.ceremonyDigest)}</tbody></table></div>`;
}

function relation(digest: string | undefined, register: string | undefined, isAuthentic: boolean): Html {
  if (!isAuthentic) return html`not evaluated`;
  if (register === undefined)
    return digest === undefined
      ? html`<span class="note">not in the document</span>`
      : html`<b class="bad">not in the document</b>`;
  if (digest === undefined) return html`see below`;
  const follows = extendedOnce(Buffer.from(digest, 'hex')).toString('hex') === register;
  return follows
    ? html`<b class="good">✔ follows from this digest</b>`
    : html`<b class="bad">✘ does NOT follow from this digest</b>`;
}

/** 48 bytes in two lines, so that they can be compared by eye and fit on paper. */
export function halves(hex: string): Html {
  const half = hex.length / 2;
  return html`<code><span>${hex.slice(0, half)}</span><span>${hex.slice(half)}</span></code>`;
}
