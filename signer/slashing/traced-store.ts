// A store that tells what is asked of it and what it answers, for the checker of traces (test/model/conformance.ts).
// Off unless the log module `slashing_trace` is at `debug`. It changes no answer, and its lines contain no secrets.

import { encodeHex } from '../../common/formats/hex.ts';
import type { LogFields } from '../../common/observe/log.ts';
import type { Tenures } from '../tenure.ts';
import { floorFields } from './jump.ts';
import type { SlashableMessage, SlashingBackend, SlashingVerdict, ValidatorHistory } from './types.ts';

export type TraceLine = LogFields & { readonly call: number };

/** Two lines of each call: one when it begins, one with `end` or `failed` when it is over. */
export function tracedStore(store: SlashingBackend, write: (line: TraceLine) => void): SlashingBackend {
  let calls = 0;
  async function traced<Result>(begin: LogFields, work: () => Promise<Result>, end: (result: Result) => LogFields) {
    calls += 1;
    const call = calls;
    write({ call, ...begin });
    try {
      const result = await work();
      write({ call, end: end(result) });
      return result;
    } catch (error) {
      write({ call, failed: true });
      throw error;
    }
  }
  return {
    ...store,
    checkAndRecord: (messages, floors) =>
      traced(
        { check: messages.map(messageFields) },
        () => store.checkAndRecord(messages, floors),
        (verdicts) => ({ verdicts: verdicts.map(verdictName) }),
      ),
    jump: (floor, lowers) =>
      traced(
        { jump: floorFields(floor) },
        () => store.jump(floor, lowers),
        () => ({}),
      ),
    endTenures: (keys) => traced({ end_tenures: keys }, () => store.endTenures(keys), tenureFields),
    beginTenures: (from) => traced({ begin_tenures: [...from] }, () => store.beginTenures(from), tenureFields),
    pruneStep: (most) =>
      traced(
        { prune: most },
        () => store.pruneStep(most),
        (entries) => ({ entries }),
      ),
    importHistories: (histories, options) => {
      const parts: LogFields[] = [];
      return traced(
        { import: options?.strategy ?? 'by_key' },
        () => store.importHistories(noting(histories, parts), options),
        () => ({ histories: parts }),
      );
    },
  };
}

const tenureFields = (tenures: Tenures): LogFields => ({ tenures: [...tenures] });

function messageFields(message: SlashableMessage): LogFields {
  const { publicKey, tenure = 0, signingRoot } = message;
  const fields = { public_key: publicKey, tenure, root: encodeHex(signingRoot) };
  if (message.kind === 'block') return { ...fields, slot: message.slot };
  return { ...fields, source_epoch: message.sourceEpoch, target_epoch: message.targetEpoch };
}

function verdictName(verdict: SlashingVerdict): string {
  if (verdict.kind === 'safe') return verdict.repeat ? 'repeat' : 'safe';
  return verdict.reason;
}

async function* noting(
  histories: AsyncIterable<ValidatorHistory>,
  parts: LogFields[],
): AsyncGenerator<ValidatorHistory> {
  for await (const history of histories) {
    parts.push(historyFields(history));
    yield history;
  }
}

function historyFields({ publicKey, blocks, attestations, leftOut }: ValidatorHistory): LogFields {
  const rootText = (root: Uint8Array | null) => (root === null ? null : encodeHex(root));
  return {
    public_key: publicKey,
    blocks: blocks.map(({ slot, signingRoot }) => ({ slot, root: rootText(signingRoot) })),
    votes: attestations.map(({ sourceEpoch, targetEpoch, signingRoot }) => ({
      source_epoch: sourceEpoch,
      target_epoch: targetEpoch,
      root: rootText(signingRoot),
    })),
    left_out: leftOut !== undefined,
  };
}
