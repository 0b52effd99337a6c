// The description of `strongroom ceremony` for help and completion. It is data only: loading it opens no file.

import type { Description } from '../command-line/command.ts';
import { CHECK_IDENTITY, KEYGEN, OPEN_ROOT_TOKEN, PLAN } from './descriptions/custody.ts';
import { REHEARSE } from './descriptions/rehearse.ts';
import {
  RECORD_END,
  RECORD_FILE,
  RECORD_PCRS,
  RECORD_PERSON,
  RECORD_START,
  RECORD_STATEMENT,
  TRANSCRIPT_PAGE,
  TRANSCRIPT_VERIFY,
} from './descriptions/transcript.ts';

export const ceremonyDescription: Description = {
  summary: 'The custody of the master key: plan it, make and check identities, record the day, open the root token',
  commands: {
    plan: PLAN,
    keygen: KEYGEN,
    'check-identity': CHECK_IDENTITY,
    'open-root-token': OPEN_ROOT_TOKEN,
    record: {
      summary: 'Record a ceremony as it happens, in a transcript',
      commands: {
        start: RECORD_START,
        person: RECORD_PERSON,
        statement: RECORD_STATEMENT,
        file: RECORD_FILE,
        pcrs: RECORD_PCRS,
        end: RECORD_END,
      },
    },
    transcript: {
      summary: 'Verify the record of a ceremony, or print it',
      commands: { verify: TRANSCRIPT_VERIFY, page: TRANSCRIPT_PAGE },
    },
    rehearse: REHEARSE,
  },
  examples: [
    'strongroom ceremony plan ceremony.yaml',
    'strongroom ceremony keygen --output alice.age',
    'strongroom ceremony check-identity ceremony.yaml --identity alice.age',
  ],
};
