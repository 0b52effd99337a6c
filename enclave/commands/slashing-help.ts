// Help of `strongroom slashing`.

export const SLASHING_HELP = `strongroom slashing: the slashing protection records of the configured backend

Usage:
  strongroom slashing export -c CONFIG [--output FILE] [--pubkeys A,B]
  strongroom slashing import FILE -c CONFIG [--as-minimal | --complete]
  strongroom slashing import --from-web3signer URL -c CONFIG [--complete]
  strongroom slashing jump -c CONFIG [--dry-run] [--slot N --epoch N]
  strongroom slashing prune -c CONFIG
  strongroom slashing reinstate KEY… -c CONFIG
  strongroom slashing retire KEY… -c CONFIG
  strongroom slashing status -c CONFIG

With sqlite the server has to be stopped; postgres and dynamodb may be in use.

  export   Writes an EIP-3076 interchange file (version 5) to stdout or to FILE.
             strongroom slashing export -c strongroom.yaml --output slashing_protection.json
             strongroom slashing export -c strongroom.yaml --pubkeys 0x8000…,0xa99a… > two-keys.json
  import   Merges an EIP-3076 file, never weakening what is there; all or nothing. FILE - reads stdin.
           Import before the keys are loaded: while a file is merged its keys are refused.
           A key that is new to the store keeps the entries of the file. A key that the store has records of is merged as
           minimal: everything up to the highest entries of the file is refused, because the file may be pruned or say less
           than the key signed elsewhere, and what lies between would look safe.
           --as-minimal: merge new keys so too.
           --complete: merge keys that the store has records of by EIP-3076's complete strategy instead. Only for a file
           that is known to list everything that its keys ever signed elsewhere: then nothing more than that is refused.
             strongroom slashing import slashing_protection.json -c strongroom.yaml
             strongroom slashing import newer.json --as-minimal -c strongroom.yaml
             zcat slashing_protection.json.gz | strongroom slashing import - -c strongroom.yaml
           --from-web3signer URL: reads the database of a Web3Signer that is stopped for good, and changes nothing in it.
           postgresql://USER@HOST/DATABASE as in anti_slashing.url (TLS unless ?sslmode=disable), or env:NAME of a variable
           or file:/PATH of a file that holds it, which keeps a password from other users. It is merged as minimal, so a second run changes nothing;
           --complete as above. Keys that are disabled there are retired here. Refused while another program is connected
           to the database, when its rows change, of another network, and of a schema before version 7 or after 12.
             WEB3SIGNER_DB=postgresql://… strongroom slashing import --from-web3signer env:WEB3SIGNER_DB -c strongroom.yaml
             strongroom slashing import --from-web3signer 'postgresql://web3signer@db:5432/web3signer' -c strongroom.yaml
  jump     Raises the store to the present, for every key and every signer of it, after any doubt whether records were
           lost (a restored backup, a failover that lost commits). Everything up to now is refused from then on, which
           costs a validator at most one vote. --slot and --epoch say what the present is, where the clock cannot.
           With dynamodb it also moves a table to the configured region, and makes a record that was lost anew: stop all
           signers of the other region for good before.
             strongroom slashing jump --dry-run -c strongroom.yaml
             strongroom slashing jump -c strongroom.yaml
  prune    Deletes entries that lie behind the low-water marks; the server does so by itself, in small steps.
             strongroom slashing prune -c strongroom.yaml
             strongroom slashing prune -c strongroom.yaml && strongroom slashing status -c strongroom.yaml
  reinstate
           Lets keys sign again that were retired: by a DELETE, by being made inactive, or by the command below.
           Their old records stay. Importing a key does the same.
             strongroom slashing reinstate 0x8000… -c strongroom.yaml
  retire   From now on every signer of this store refuses these keys; durable when the command ends. What is exported
           afterwards is final: nothing can be signed that it does not list.
             strongroom slashing retire 0x8000… -c strongroom.yaml
             strongroom slashing export --pubkeys 0x8000… -c strongroom.yaml > moved.json
  status   Shows the store, its network, its floor, how many records it holds, and which keys are retired.
             strongroom slashing status -c strongroom.yaml
             watch strongroom slashing status -c strongroom.yaml

Exit codes: 0 done, 1 usage or a store that cannot be used, 2 a file or database refused as a whole (with the place),
78 a configuration that cannot be used.
`;
