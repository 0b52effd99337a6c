// `strongroom ceremony rehearse`: the entire first boot of a ceremony against local stand-ins for DynamoDB and KMS,
// with throw-away keys under the ceremony's own ARNs and a throw-away identity in place of its recipients. Nothing
// outside this machine is called, nothing is kept, and every line says REHEARSAL, so that no output can pass for the
// real event.

import { readCeremonyFile } from '../ceremony/commands/ceremony-file.ts';
import { type Command, CommandError, readArguments } from '../ceremony/commands/command.ts';
import { ceremonyBlock } from '../ceremony/definition.ts';
import { missingDynamoDB } from './dynamodb.ts';
import { setStage } from './stage.ts';

const PREFIX = 'REHEARSAL  ';

export const rehearse: Command = {
  help: `Run the entire first boot of a ceremony on this machine, with throw-away keys

Usage: strongroom ceremony rehearse FILE

FILE is YAML: the ceremony block by itself, or a configuration that has one. Its keys and recipients are not used: local stand-ins
take their place. Needs Linux on x86-64, and the optional package @dynoxide/linux-x64, a stand-in for DynamoDB, which npm installs there.

Examples:
  strongroom ceremony rehearse ceremony.yaml
  strongroom ceremony rehearse strongroom.yaml | tee rehearsal.log
`,

  async run(argv) {
    const { positionals } = readArguments(argv, [], 1);
    const [file] = positionals;
    if (file === undefined) throw new CommandError('name the FILE with the ceremony');
    const ceremony = await readCeremonyFile(file);
    const missing = missingDynamoDB();
    if (missing !== undefined) throw new CommandError(missing);
    const stage = await setStage(PREFIX, ceremonyBlock(ceremony));
    try {
      await perform(
        stage,
        ceremony.kmsKeys.map(({ arns }) => arns),
        ceremony.kmsThreshold,
      );
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

async function perform(
  { custody, heading, say, startReplica, operator, table }: Awaited<ReturnType<typeof setStage>>,
  keys: readonly (readonly string[])[],
  threshold: number,
): Promise<void> {
  heading('First boot on a fresh state table');
  const first = await startReplica();
  await first.logged('initialised: a new master key and root token are written');
  say(`initialised: the master key is split to ${keys.length} custody keys, any ${threshold} of which open it`);

  heading('Opening the root token with an age identity');
  const rootToken = await custody.rootToken(table);
  say(await operator(first, rootToken, ['status']));
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

  heading('The rehearsal is over: nothing of it is kept, and the real keys were not called');
}
