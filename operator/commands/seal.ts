// `strongroom operator seal`: break-glass. Writes the latch that seals every replica
// (specification/custody.md#sealing).

import { renderFields } from '../../command-line/table.ts';
import { note } from '../../command-line/terminal.ts';
import { columnsOf, wrap } from '../../command-line/wrap.ts';
import { type SealRequest, sealAnswerSchema } from '../../enclave/api/chamber.ts';
import { MAX_SEAL_REASON_CHARACTERS } from '../../enclave/api/limits.ts';
import { STATEFUL } from '../client.ts';
import type { RemoteCall } from '../command.ts';
import type { seal } from '../descriptions/replicas.ts';
import { UsageFailure } from '../exit.ts';

const CONSEQUENCE =
  'Every replica seals and stops signing, and stays so across restarts, until the SEAL_OVERRIDE row of the state table ' +
  'is deleted (`operator recover`) and every replica is restarted. Those with signer_state.refresh_interval_seconds 0 ' +
  'sign on until they are restarted.';
/** One without a refresh interval never looks at the table while it runs. */
const FOLLOWING =
  'sealed: this replica and the latch; the other replicas seal at their next look at the state table, those with ' +
  'signer_state.refresh_interval_seconds 0 only when they are restarted';

export async function sealFleet({
  values: { reason },
  client,
  output,
  terminal,
  confirm,
}: RemoteCall<typeof seal.flags>): Promise<void> {
  if (reason !== undefined && reason.length > MAX_SEAL_REASON_CHARACTERS) {
    throw new UsageFailure(`--reason has more than ${MAX_SEAL_REASON_CHARACTERS} characters`);
  }
  await confirm(CONSEQUENCE, 'seal');
  const json: SealRequest = reason === undefined ? {} : { reason };
  const answer = await client.request(
    { method: 'POST', path: '/api/v1/chamber/seal', json, ...STATEFUL },
    sealAnswerSchema,
  );
  output.answer(answer, (latch, columns) =>
    renderFields(
      [
        ['state', latch.state],
        ['sealed at', latch.sealed_at ?? 'not recorded'],
        ['reason', latch.reason ?? 'none given'],
      ],
      columns,
    ),
  );
  for (const line of wrap(FOLLOWING, columnsOf(terminal.stderr))) note(terminal, line);
}
