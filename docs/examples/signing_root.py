#!/usr/bin/env python3
"""The signing root of a vote or a block, from what a beacon node says of it (consensus specifications, phase 0).

It needs Python 3.9 and nothing else. Give it JSON of a beacon node's API: the `data` of an attestation, or the
`message` of a block's header; the fork version at its epoch; and the genesis validators root of the network:

    signing_root.py vote.json --fork-version 0x06000000 --genesis-validators-root 0x4b363db9…

A signature on the chain is valid for one such root and the key of its validator. The root is what
`strongroom operator receipts verify --signing-root` looks for.
"""

import argparse
import hashlib
import json
import sys

DOMAIN_BEACON_PROPOSER, DOMAIN_BEACON_ATTESTER = b"\0\0\0\0", b"\1\0\0\0"


def sha256(data):
    return hashlib.sha256(data).digest()


def merkleize(chunks):
    """SSZ: the chunks, zeros up to a power of two, and hashes of pairs."""
    width = 1 << (len(chunks) - 1).bit_length()
    row = chunks + [bytes(32)] * (width - len(chunks))
    while len(row) > 1:
        row = [sha256(row[at] + row[at + 1]) for at in range(0, len(row), 2)]
    return row[0]


def number(text):
    return int(text).to_bytes(8, "little").ljust(32, b"\0")


def root(text):
    data = bytes.fromhex(text.removeprefix("0x"))
    if len(data) != 32:
        raise ValueError("a root has 32 bytes")
    return data


def checkpoint(value):
    return merkleize([number(value["epoch"]), root(value["root"])])


def message_root(message):
    """The root of the message, and its domain type."""
    if "proposer_index" in message:
        roots = [root(message[name]) for name in ("parent_root", "state_root", "body_root")]
        return merkleize([number(message["slot"]), number(message["proposer_index"]), *roots]), DOMAIN_BEACON_PROPOSER
    head, source, target = root(message["beacon_block_root"]), message["source"], message["target"]
    chunks = [number(message["slot"]), number(message["index"]), head, checkpoint(source), checkpoint(target)]
    return merkleize(chunks), DOMAIN_BEACON_ATTESTER


def signing_root(message, fork_version, genesis_validators_root):
    object_root, domain_type = message_root(message)
    fork_data_root = merkleize([fork_version.ljust(32, b"\0"), genesis_validators_root])
    return merkleize([object_root, domain_type + fork_data_root[:28]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("message", metavar="FILE", help="JSON of a vote's data or of a block's header")
    parser.add_argument("--fork-version", metavar="HEX", required=True, help="4 bytes: of the fork at its epoch")
    parser.add_argument("--genesis-validators-root", metavar="HEX", required=True, help="32 bytes: of the network")
    options = parser.parse_args()
    version = bytes.fromhex(options.fork_version.removeprefix("0x"))
    if len(version) != 4:
        raise ValueError("a fork version has 4 bytes")
    with open(options.message, encoding="utf-8") as file:
        message = json.load(file)
    print("0x" + signing_root(message, version, root(options.genesis_validators_root)).hex())


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as problem:
        sys.exit(f"signing_root.py: {problem!r}")
