// `strongroom operator seal`: break-glass. Writes the latch that seals every replica
// (specification/custody.md#sealing).

import { renderFields } from '../../common/command-line/table.ts';
import { note } from '../../common/command-line/terminal.ts';
import { columnsOf, wrap } from '../../common/command-line/wrap.ts';
import { sealAnswerSchema } from '../../signer/api/chamber.ts';
import { MAX_SEAL_REASON_CHARACTERS } from '../../signer/api/primitives.ts';
import { STATEFUL } from '../client.ts';
import { remoteCommand, YES } from '../command.ts';
import { AUTH_TOKEN } from '../common-flags.ts';
import { UsageFailure } from '../exit.ts';

const CONSEQUENCE =
  'Every replica seals and stops signing, and stays so across restarts, until the SEAL_OVERRIDE row of the state table ' +
  'is deleted (`operator recover`) and every replica is restarted. Those with signer_state.refresh_interval_seconds 0 ' +
  'sign on until they are restarted.';
/** With an interval of 0 a replica never reads the table while it runs. */
const FOLLOWING =
  'sealed: this replica and the latch; the other replicas seal at their next look at the state table, those with ' +
  'signer_state.refresh_interval_seconds 0 only when they are restarted';

export const seal = remoteCommand(
  {
    summary: 'Write the break-glass latch: every replica stops signing',
    flags: {
      reason: {
        placeholder: 'TEXT',
        meaning: `For the latch and the audit log; at most ${MAX_SEAL_REASON_CHARACTERS} characters`,
      },
      ...YES,
      ...AUTH_TOKEN,
    },
    examples: ['seal --reason "incident 42"', 'seal --token @/run/secrets/strongroom-seal-token </dev/null'],
  },

  async ({ values: { reason }, client, output, terminal, confirm }) => {
    if (reason !== undefined && reason.length > MAX_SEAL_REASON_CHARACTERS) {
      throw new UsageFailure(`--reason has more than ${MAX_SEAL_REASON_CHARACTERS} characters`);
    }
    // A script that seals means it: a question that it cannot answer would leave the fleet signing.
    if (terminal.stdin.isTTY && terminal.stderr.isTTY) await confirm(CONSEQUENCE, 'seal');
    const json = reason === undefined ? {} : { reason };
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
  },
);
