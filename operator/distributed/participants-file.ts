// The file of `--participants`: profiles as in the operator's own file, each of them a participant. Flags and variables
// that name one signer do not count here: a profile says all of its participant, and paths are relative to the file.

import { resolve } from 'node:path';
import type { DocumentProvider } from '../../common/attestation/contract.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { bounded } from '../../common/command-line/text.ts';
import { MAX_PARTICIPANTS } from '../../signer/api/distributed.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import { readProfiles } from '../profile.ts';
import { settingsOfProfile } from '../settings.ts';
import { readToken } from '../token.ts';
import type { ParticipantSettings } from './participants.ts';

const LEAST_PARTICIPANTS = 2;

export async function participantsOf(
  file: string,
  world: Terminal & { readonly provider: DocumentProvider },
): Promise<readonly ParticipantSettings[]> {
  const path = resolve(file);
  const profiles = readProfiles(path);
  if (profiles === undefined)
    throw localFailure(`${bounded(path, 200)} does not exist`, 'write a profile for each participant');
  if (profiles.length < LEAST_PARTICIPANTS || profiles.length > MAX_PARTICIPANTS)
    throw localFailure(
      `${bounded(path, 200)} has ${profiles.length} profiles: ` +
        `a key has ${LEAST_PARTICIPANTS} to ${MAX_PARTICIPANTS} participants`,
    );
  const participants: ParticipantSettings[] = [];
  for (const profile of profiles) {
    const name = bounded(profile.name, 60);
    for (const one of ['timeout-seconds', 'json'] as const)
      if (profile.values[one] !== undefined)
        throw new UsageFailure(`profile ${name} has ${one}, which says nothing of a participant`);
    const { peer, token } = settingsOfProfile(profile, world.provider);
    if (peer.attestation !== undefined)
      throw new UsageFailure(`profile ${name} has reference values: enclaves are no participants yet`);
    if (profile.values['signer-url'] === undefined) throw new UsageFailure(`profile ${name} has no signer_url`);
    if (token === undefined) throw new UsageFailure(`profile ${name} has no token, and a participant asks for one`);
    participants.push({ name, peer, token: await readToken(token, world) });
  }
  return participants;
}
