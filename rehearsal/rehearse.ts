// `strongroom ceremony rehearse`: the entire first boot against local stand-ins, with throw-away keys. The recipients
// are the ceremony's own. Nothing outside this machine is called, and every line says REHEARSAL, so that no output can
// pass for the real event.

import { CEREMONY_FILE } from '../ceremony/commands/arguments.ts';
import { readCeremonyFile } from '../ceremony/commands/ceremony-file.ts';
import { type CeremonyTerminal, CommandError } from '../ceremony/commands/command.ts';
import { checkCeremonyOutput } from '../ceremony/commands/output-file.ts';
import { type Ceremony, ceremonyBlock } from '../ceremony/definition.ts';
import { command } from '../common/command-line/program.ts';
import { missingDynamoDB } from './dynamodb.ts';
import { type OpeningOptions, readParticipants, rehearseOpening } from './opening.ts';
import { type Stage, setStage } from './stage.ts';

const PREFIX = 'REHEARSAL  ';

export const rehearse = command(
  {
    summary: 'Run the entire first boot of a ceremony on this machine, with throw-away keys',
    notes: [
      'Local stand-ins take the place of its custody keys and of DynamoDB. The root token is encrypted to the ' +
        "ceremony's own recipients, and is worth nothing after the rehearsal: each participant opens it as on the day, " +
        'here or on a machine of their own.',
      'Needs Linux on x86-64, and the optional package @dynoxide/linux-x64, a stand-in for DynamoDB, which npm installs ' +
        'there.',
    ],
    argument: CEREMONY_FILE,
    flags: {
      identity: {
        placeholder: 'FILE',
        repeatable: true,
        meaning:
          'A participant who is here: it opens the root token, which then asks the signer for its status. A passphrase ' +
          'is asked for twice: the identity is proven before the boot',
      },
      output: {
        placeholder: 'FILE',
        meaning: "Keep the rehearsal's row of the root token, for participants who open it elsewhere",
      },
      force: { meaning: 'Overwrite that file' },
    },
    examples: [
      'strongroom ceremony rehearse ceremony.yaml --output row.json',
      'strongroom ceremony rehearse strongroom.yaml --identity alice.age | tee rehearsal.log',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { output, force, identity = [] } = values;
    const ceremony = await readCeremonyFile(file);
    const missing = missingDynamoDB();
    if (missing !== undefined) throw new CommandError(missing);
    if (output !== undefined) await checkCeremonyOutput(output, force);
    const participants = await readParticipants(ceremony, identity, terminal);
    const stage = await setStage(PREFIX, ceremonyBlock(ceremony));
    try {
      await perform(stage, ceremony, { participants, rowFile: output, isForced: force }, terminal);
    } finally {
      await stage.close();
    }
  },
);

/** A start that failed otherwise proves nothing. @param failure undefined when it started */
export function thresholdRefusal(failure: string | undefined, threshold: number, keys: number): string {
  if (failure === undefined) throw new Error('the signer started below its threshold');
  const refused = /strongroom: cannot start: .*/s.exec(failure)?.[0];
  const reason = `needs ${threshold} of its ${keys} custody keys and ${threshold - 1} served`;
  if (refused?.includes(reason) !== true)
    throw new Error(`the signer did not start, but not for its threshold: ${failure}`);
  return refused;
}

async function perform(
  stage: Stage,
  ceremony: Ceremony,
  options: OpeningOptions,
  terminal: CeremonyTerminal,
): Promise<void> {
  const { custody, heading, say, startReplica } = stage;
  const { kmsThreshold: threshold } = ceremony;
  const keys = ceremony.kmsKeys.map(({ arns }) => arns);
  heading('First boot on a fresh state table');
  const first = await startReplica();
  await first.logged('initialised: a new master key and root token are written');
  say(`initialised: the master key is split to ${keys.length} custody keys, any ${threshold} of which open it`);

  const rootToken = await rehearseOpening(stage, ceremony, options, terminal);
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
