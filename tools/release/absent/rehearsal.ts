// In a release `strongroom ceremony rehearse` says where it can be had: its stand-ins are tools of a checkout.

import { type CeremonyTerminal, CommandError } from '../../../ceremony/commands/command.ts';
import type { Command } from '../../../common/command-line/program.ts';

export const rehearse: Command<CeremonyTerminal> = {
  description: {
    summary: 'Run the entire first boot of a ceremony on this machine (in a checkout of the sources)',
    notes: [
      'A release has none of the stand-ins for DynamoDB and KMS that it needs: run it in a checkout of the sources.',
    ],
  },

  async run() {
    throw new CommandError('a release has no stand-ins for DynamoDB and KMS: rehearse in a checkout of the sources');
  },
};
