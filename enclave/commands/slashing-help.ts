// Help of `strongroom slashing`.

export const SLASHING_HELP = `strongroom slashing: the slashing protection records of the configured backend

Usage:
  strongroom slashing export -c CONFIG [--output FILE] [--pubkeys A,B]
  strongroom slashing import FILE -c CONFIG [--as-minimal]
  strongroom slashing prune -c CONFIG
  strongroom slashing status -c CONFIG

With sqlite the server has to be stopped; postgres and dynamodb may be in use.

  export   Writes an EIP-3076 interchange file (version 5) to stdout or to FILE.
             strongroom slashing export -c strongroom.yaml --output slashing_protection.json
             strongroom slashing export -c strongroom.yaml --pubkeys 0x8000…,0xa99a… > two-keys.json
  import   Merges an EIP-3076 file, never weakening what is there; all or nothing. FILE - reads stdin.
           Import before the keys are loaded: while a file is merged its keys, and with sqlite all keys, are refused.
           --as-minimal: the store has older entries of these keys, and they signed more than the file lists (it is
           minimal, or was pruned). Everything up to the highest entries of the file is refused from then on.
             strongroom slashing import slashing_protection.json -c strongroom.yaml
             strongroom slashing import newer.json --as-minimal -c strongroom.yaml
             zcat slashing_protection.json.gz | strongroom slashing import - -c strongroom.yaml
  prune    Deletes entries that lie behind the low-water marks; the server does so by itself, in small steps.
             strongroom slashing prune -c strongroom.yaml
             strongroom slashing prune -c strongroom.yaml && strongroom slashing status -c strongroom.yaml
  status   Shows the backend, its network and how many records it holds.
             strongroom slashing status -c strongroom.yaml
             watch strongroom slashing status -c strongroom.yaml

Exit codes: 0 done, 1 usage or a store that cannot be used, 2 a file refused as a whole (with the place),
78 a configuration that cannot be used.
`;
