// What the commands of replicas say of themselves: look at them, stop them, bring them back.

import { FORMER_OUTPUT } from '../../command-line/json-output.ts';
import { MAX_SEAL_REASON_CHARACTERS } from '../../enclave/api/limits.ts';
import { localDescription, remoteDescription, YES } from '../command.ts';
import { AUTH_TOKEN, COMMON_FLAGS } from '../common-flags.ts';

export const DEFAULT_INTERVAL_SECONDS = 2;
export const DEFAULT_METRICS_PORT = 3000;

export const status = remoteDescription({
  summary: 'Show the seal state, loaded keys and health of the replica at the URL',
  flags: { ...AUTH_TOKEN },
  examples: ['status --auth-token env:MONITORING_TOKEN', 'status --json --signer-url https://signer-1.example:9443'],
});

export const top = localDescription({
  summary: 'Watch all replicas: state, generation, measurements, keys, rate, p99, refusals',
  flags: {
    replica: {
      placeholder: 'PROFILE|URL',
      meaning: 'A replica; repeat for others',
      repeatable: true,
      isProfile: true,
    },
    metrics: { placeholder: 'URL', meaning: 'Its metrics, in the order of --replica', repeatable: true },
    interval: { placeholder: 'SECONDS', meaning: `Between two looks; default ${DEFAULT_INTERVAL_SECONDS}` },
    once: { meaning: 'Two looks, one frame, and exit: for scripts' },
    ...COMMON_FLAGS,
  },
  notes: [
    `Metrics are looked for at http://HOST:${DEFAULT_METRICS_PORT} of each replica unless --metrics says where. They ` +
      'come over plain HTTP and unattested, also of an enclave. The status needs the scope chamber_status; without it ' +
      'state and rates are shown alone. Ctrl-C ends it.',
  ],
  examples: ['top --replica signer-1 --replica signer-2', 'top --once --json --profile mainnet'],
});

export const seal = remoteDescription({
  summary: 'Write the break-glass latch: every replica stops signing',
  flags: {
    reason: {
      placeholder: 'TEXT',
      meaning: `For the latch and the audit log; at most ${MAX_SEAL_REASON_CHARACTERS} characters`,
    },
    ...YES,
    ...AUTH_TOKEN,
  },
  examples: ['seal --reason "incident 42"', 'seal --yes --token @/run/secrets/strongroom-seal-token'],
});

export const recover = remoteDescription({
  summary: 'Say what recovery takes; with --yes delete the latch of a sealed fleet',
  flags: {
    table: { placeholder: 'TABLE', meaning: 'The state table (signer_state.table), by name or ARN; for --yes' },
    yes: { meaning: 'Delete the latch, with the AWS credentials of the environment' },
  },
  notes: [
    'Without --yes it only prints. With it the row is deleted if it is still the one that was read, and if the ' +
      'replica at the URL, when one answers, is sealed by it. When something else answers there, nothing is deleted. ' +
      'Then restart every replica.',
  ],
  examples: ['recover', 'recover --table strongroom-state --yes'],
});

export const doctor = localDescription({
  summary: 'Find out why commands do not work from here, and what to do',
  flags: { ...FORMER_OUTPUT, ...COMMON_FLAGS, ...AUTH_TOKEN },
  notes: [
    'It sends GETs only: the probes, the holder of the token, its status and the list of public keys. A token that ' +
      'may not do one of these leaves a refusal in the audit log of the signer.',
  ],
  examples: ['doctor --profile mainnet', 'doctor --signer-url https://signer-1.example:9443 --json'],
});
