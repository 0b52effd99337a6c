// EIP-3076 files for tests.

import { MAINNET_ROOT, rootOf } from './requests.ts';

export interface InterchangeFile {
  readonly metadata: { readonly interchange_format_version: string; readonly genesis_validators_root: string };
  readonly data: readonly {
    readonly pubkey: string;
    readonly signed_blocks: readonly { readonly slot: string; readonly signing_root?: string }[];
    readonly signed_attestations: readonly {
      readonly source_epoch: string;
      readonly target_epoch: string;
      readonly signing_root?: string;
    }[];
  }[];
}

/** A file in which each key has voted from epoch 20 to 21 and proposed at slot 2000. */
export function interchangeOf(publicKeys: readonly string[], genesisValidatorsRoot = MAINNET_ROOT): InterchangeFile {
  return {
    metadata: { interchange_format_version: '5', genesis_validators_root: genesisValidatorsRoot },
    data: publicKeys.map((pubkey) => ({
      pubkey,
      signed_blocks: [{ slot: '2000', signing_root: rootOf(0xaa) }],
      signed_attestations: [{ source_epoch: '20', target_epoch: '21', signing_root: rootOf(0xbb) }],
    })),
  };
}
