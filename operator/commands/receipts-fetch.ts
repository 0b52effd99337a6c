// `strongroom operator receipts fetch`: the signer's logs into a folder, which is verified as a whole afterwards. What
// is in the folder stays, and is read again in the next call.

import { renderTable } from '../../common/command-line/table.ts';
import { remoteCommand } from '../command.ts';
import {
  demandWhole,
  fetchLogs,
  RETENTION,
  readQuestion,
  SPAN,
  TIMEOUT_SECONDS,
  verifyFolder,
} from '../receipts/logs.ts';
import { renderVerdict } from './receipts.ts';

export const receiptsFetch = remoteCommand(
  {
    summary: "Fetch the signer's logs into a folder, and verify them; once more, and it fetches what is new",
    flags: { ...SPAN, ...RETENTION },
    argument: { name: 'FOLDER', meaning: 'Where to; it is made when it is not there' },
    notes: [
      'Every head and entry is verified before it stays. With --from or --to, the heads of all boots come, and the entries of those boots that ran then; gaps of other times are left out.',
    ],
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: ['receipts fetch receipts --pcrs pcrs.json', 'receipts fetch receipts --from 2026-11-01 --to 2026-12-01'],
  },

  async (call) => {
    const { argument, values, output } = call;
    const question = readQuestion(values);
    const fetched = await fetchLogs(call, argument, question);
    const { verified } = verifyFolder(call, argument, question);
    const { verdict, findings } = verified;
    output.answer({ value: fetched, text: JSON.stringify({ verdict, findings, fetched }) }, (boots, columns) => {
      const rows = boots.map(({ boot, heads, entries, files }) => {
        return [boot, String(heads), entries === undefined ? 'not asked for' : String(entries), String(files)];
      });
      return renderTable(['BOOT', 'HEADS', 'ENTRIES', 'NEW FILES'], rows, columns) + renderVerdict(verified, question);
    });
    demandWhole(verified);
  },
);
