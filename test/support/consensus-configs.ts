// Consensus config.yaml files as networks have them. PACKAGE is spelled as ethereum-package writes the one of a devnet:
// hex without quotes, keys that a signer does not need, forks that it does not know, every fork but the last at
// genesis. OWN is a network of short slots and epochs, spelled in the other ways.

export const PACKAGE_CONFIG = `# Mainnet config

# Extends the mainnet preset
PRESET_BASE: 'mainnet'

# Must match the regex: [a-z0-9\\-]
CONFIG_NAME: 'testnet' # needs to exist because of Prysm. Otherwise it conflicts with mainnet genesis

# Transition
# ---------------------------------------------------------------
TERMINAL_TOTAL_DIFFICULTY: 0
# By default, don't use these params
TERMINAL_BLOCK_HASH: 0x0000000000000000000000000000000000000000000000000000000000000000
TERMINAL_BLOCK_HASH_ACTIVATION_EPOCH: 18446744073709551615

# Genesis
# ---------------------------------------------------------------
MIN_GENESIS_ACTIVE_VALIDATOR_COUNT: 64
# 2026-Nov-22 12:00:00 PM UTC
MIN_GENESIS_TIME: 1795348800
GENESIS_FORK_VERSION: 0x10000038
GENESIS_DELAY: 20

# Forking
# ---------------------------------------------------------------
# Altair
ALTAIR_FORK_VERSION: 0x20000038
ALTAIR_FORK_EPOCH: 0
# Merge
BELLATRIX_FORK_VERSION: 0x30000038
BELLATRIX_FORK_EPOCH: 0
# Capella
CAPELLA_FORK_VERSION: 0x40000038
CAPELLA_FORK_EPOCH: 0
# Deneb
DENEB_FORK_VERSION: 0x50000038
DENEB_FORK_EPOCH: 0
# Electra
ELECTRA_FORK_VERSION: 0x60000038
ELECTRA_FORK_EPOCH: 0
# Fulu
FULU_FORK_VERSION: 0x70000038
FULU_FORK_EPOCH: 0
# Gloas
GLOAS_FORK_VERSION: 0x80000038
GLOAS_FORK_EPOCH: 1
# Heze
HEZE_FORK_VERSION: 0x90000038
HEZE_FORK_EPOCH: 18446744073709551615
# EIP7928
EIP7928_FORK_VERSION: 0xe0000038
EIP7928_FORK_EPOCH: 18446744073709551615

# Time parameters
# ---------------------------------------------------------------
# 12 seconds (*deprecated*)
SECONDS_PER_SLOT: 12
# 12000 milliseconds
SLOT_DURATION_MS: 12000
SECONDS_PER_ETH1_BLOCK: 12
# 3333 basis points, ~33% of SLOT_DURATION_MS
ATTESTATION_DUE_BPS: 3333

# Deposit contract
# ---------------------------------------------------------------
DEPOSIT_CHAIN_ID: 3151908
DEPOSIT_NETWORK_ID: 3151908
DEPOSIT_CONTRACT_ADDRESS: 0x00000000219ab540356cBB839Cbe05303d7705Fa

# Networking
# ---------------------------------------------------------------
MESSAGE_DOMAIN_INVALID_SNAPPY: 0x00000000
MESSAGE_DOMAIN_VALID_SNAPPY: 0x01000000

# Blob Scheduling
# ---------------------------------------------------------------

BLOB_SCHEDULE:
  - EPOCH: 0
    MAX_BLOBS_PER_BLOCK: 21
`;

export const OWN_CONFIG = `PRESET_BASE: minimal
CONFIG_NAME: "short-epochs"
GENESIS_FORK_VERSION: "0x0000000A"
ALTAIR_FORK_VERSION: 0x0100000A
ALTAIR_FORK_EPOCH: "2"
BELLATRIX_FORK_VERSION: '0x0200000a'
BELLATRIX_FORK_EPOCH: '3'
CAPELLA_FORK_VERSION: 0x0300000a
CAPELLA_FORK_EPOCH: 18446744073709551615
SECONDS_PER_SLOT: "2"
`;
