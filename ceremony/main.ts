// `strongroom ceremony …`, offline: it touches files it is told to, and runs age where an identity needs it. Exit
// codes: specification/operating.md#exit-codes.

import { type Branch, type Failure, type Group, runProgram } from '../common/command-line/program.ts';
import { type CeremonyTerminal, CommandError } from './commands/command.ts';

const record = () => import('./commands/record.ts');
const transcript = () => import('./commands/transcript.ts');

/** @param rehearse reaches beyond this folder: the command tree adds it */
export function ceremonyTree(rehearse?: Branch<CeremonyTerminal>): Group<CeremonyTerminal> {
  return {
    summary: 'The custody of the master key: plan it, make and check identities, record the day, open the root token',
    commands: {
      plan: async () => (await import('./commands/plan.ts')).plan,
      script: async () => (await import('./commands/script.ts')).script,
      keygen: async () => (await import('./commands/keygen.ts')).keygen,
      'check-identity': async () => (await import('./commands/check-identity.ts')).checkIdentity,
      'open-root-token': async () => (await import('./commands/open-root-token.ts')).openRootTokenCommand,
      record: {
        summary: 'Record a ceremony as it happens, in a transcript',
        commands: {
          start: async () => (await record()).recordStart,
          person: async () => (await record()).recordPerson,
          statement: async () => (await record()).recordStatement,
          file: async () => (await record()).recordFile,
          pcrs: async () => (await record()).recordPcrs,
          'master-key': async () => (await record()).recordMasterKey,
          end: async () => (await record()).recordEnd,
        },
      },
      transcript: {
        summary: 'Verify the record of a ceremony, or print it',
        commands: {
          verify: async () => (await transcript()).transcriptVerify,
          page: async () => (await transcript()).transcriptPageCommand,
        },
      },
      ...(rehearse === undefined ? {} : { rehearse }),
    },
    examples: [
      'strongroom ceremony plan ceremony.yaml',
      'strongroom ceremony keygen --output alice.age',
      'strongroom ceremony check-identity ceremony.yaml --identity alice.age',
    ],
  };
}

export function main(
  argv: readonly string[],
  terminal: CeremonyTerminal = process,
  rehearse?: Branch<CeremonyTerminal>,
): Promise<number> {
  return runProgram({ title: 'strongroom ceremony', tree: ceremonyTree(rehearse) }, argv, terminal, explain);
}

function explain(error: unknown): Failure | undefined {
  return error instanceof CommandError ? { problem: error.message } : undefined;
}
