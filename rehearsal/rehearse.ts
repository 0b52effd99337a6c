// `strongroom ceremony rehearse`: the entire first boot of a ceremony against local stand-ins for DynamoDB and KMS,
// with throw-away keys under the ceremony's own ARNs. The recipients are the ceremony's own, so each participant takes
// their real step, with a root token that opens nothing afterwards. Nothing outside this machine is called, and every
// line says REHEARSAL, so that no output can pass for the real event.

import { readCeremonyFile } from '../ceremony/commands/ceremony-file.ts';
import { type Command, CommandError, readArguments, type Terminal } from '../ceremony/commands/command.ts';
import { checkOutput } from '../ceremony/commands/output-file.ts';
import { type Ceremony, ceremonyBlock } from '../ceremony/definition.ts';
import { REHEARSE } from '../ceremony/descriptions/rehearse.ts';
import { missingDynamoDB } from './dynamodb.ts';
import { type OpeningOptions, openRootToken, readParticipants } from './opening.ts';
import { type Stage, setStage } from './stage.ts';

const PREFIX = 'REHEARSAL  ';

export const rehearse: Command = {
  description: REHEARSE,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, REHEARSE, terminal);
    const { output, force, identity = [] } = values;
    const ceremony = await readCeremonyFile(file);
    const missing = missingDynamoDB();
    if (missing !== undefined) throw new CommandError(missing);
    if (output !== undefined) await checkOutput(output, force);
    const participants = await readParticipants(ceremony, identity, terminal);
    const stage = await setStage(PREFIX, ceremonyBlock(ceremony));
    try {
      await perform(stage, ceremony, { participants, rowFile: output, isForced: force }, terminal);
    } finally {
      await stage.close();
    }
  },
};

/**
 * What the signer says when it refuses to start for want of one custody key; a start that failed otherwise proves
 * nothing.
 * @param failure undefined when it started
 */
export function thresholdRefusal(failure: string | undefined, threshold: number, keys: number): string {
  if (failure === undefined) throw new Error('the signer started below its threshold');
  const refused = /strongroom: cannot start: .*/s.exec(failure)?.[0];
  const reason = `needs ${threshold} of its ${keys} custody keys and ${threshold - 1} served`;
  if (refused?.includes(reason) !== true)
    throw new Error(`the signer did not start, but not for its threshold: ${failure}`);
  return refused;
}

async function perform(stage: Stage, ceremony: Ceremony, options: OpeningOptions, terminal: Terminal): Promise<void> {
  const { custody, heading, say, startReplica } = stage;
  const { kmsThreshold: threshold } = ceremony;
  const keys = ceremony.kmsKeys.map(({ arns }) => arns);
  heading('First boot on a fresh state table');
  const first = await startReplica();
  await first.logged('initialised: a new master key and root token are written');
  say(`initialised: the master key is split to ${keys.length} custody keys, any ${threshold} of which open it`);

  const rootToken = await openRootToken(stage, ceremony, options, terminal);
  if (rootToken !== undefined) {
    heading('Using the root token: the signer answers whoever holds it');
    say(await stage.operator(first, rootToken, ['status']));
  }
  await first.stop();

  const spare = keys.length - threshold;
  heading(`Losing ${spare} of ${keys.length} custody keys: as many as the threshold allows`);
  const lost = keys.slice(0, spare);
  for (const arns of lost) for (const arn of arns) custody.kms.setBehaviour(arn, 'disabled');
  const second = await startReplica();
  say(`unsealed without ${lost.flat().join(', ') || 'losing any: there is none to spare'}`);
  await second.stop();

  heading('Losing one more: the signer must not start');
  for (const arn of keys[spare] ?? []) custody.kms.setBehaviour(arn, 'disabled');
  const failure = await startReplica().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  say(thresholdRefusal(failure, threshold, keys.length));

  heading(`The rehearsal is over: ${keptText(options)}, and the real keys were not called`);
}

function keptText({ rowFile }: OpeningOptions): string {
  return rowFile === undefined ? 'nothing of it is kept' : `all that is kept of it is ${rowFile}`;
}
