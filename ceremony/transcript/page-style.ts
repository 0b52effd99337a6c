// How a transcript's page looks, on A4 and US letter and on a screen: black on white, digests in a fixed width that
// breaks between groups, no block of a person or row torn apart between sheets. Every sheet has the head at its foot.

/** @param head in hex digits and blanks: it stands in the style */
export function pageStyle(head: string): string {
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
h2 { font-size: 11.5pt; margin: 6mm 0 1.5mm; break-after: avoid; }
p { margin: 0 0 1.5mm; overflow-wrap: anywhere; }
dl { margin: 0; } dt { font-weight: 600; } dd { margin: 0 0 1.5mm; }
.digest, code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 8.5pt;
  overflow-wrap: anywhere; }
code { white-space: nowrap; }
.head { border: 0.6mm solid #000; padding: 2mm 3mm; margin: 3mm 0; break-inside: avoid; }
.head h2 { margin-top: 0; } .head .digest { font-size: 10.5pt; }
.draft { border: 0.6mm solid #000; padding: 1.5mm 3mm; font-weight: 700; }
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
