// In a release `strongroom ceremony rehearse` says where it can be had: its stand-ins are tools of a checkout.

import { type Command, CommandError } from '../../ceremony/commands/command.ts';
import { REHEARSE } from '../../ceremony/descriptions/rehearse.ts';

export const rehearse: Command = {
  description: {
    ...REHEARSE,
    notes: [
      'A release has none of the stand-ins for DynamoDB and KMS that it needs: run it in a checkout of the sources.',
    ],
  },

  async run() {
    throw new CommandError('a release has no stand-ins for DynamoDB and KMS: rehearse in a checkout of the sources');
  },
};
