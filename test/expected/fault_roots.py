"""Signing roots of the client faults (test/expected/client-faults.json), a third time: SSZ by hand, with nothing but
hashlib, after consensus-specs, builder-specs, EIP-7044, EIP-7495 and EIP-7916. It shares no code with the signer and
none with @lodestar/types. Prints {"name": "0x…"} for each vector that has a signing root."""

import hashlib
import json
import sys

GENESIS_VALIDATORS_ROOT = bytes.fromhex("d8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078")
# Sepolia, and the fork that the vectors invent.
FORKS = [
    ("90000069", 0), ("90000070", 50), ("90000071", 100), ("90000072", 56832), ("90000073", 132608),
    ("90000074", 222464), ("90000075", 272640), ("90000076", 353024), ("90000077", 354000),
]
GENESIS, CAPELLA = bytes.fromhex("90000069"), bytes.fromhex("90000072")
GLOAS_EPOCH = 353024
SLOTS_PER_EPOCH = 32


def sha256(data):
    return hashlib.sha256(data).digest()


def unhex(text):
    return bytes.fromhex(text[2:] if text[:2].lower() == "0x" else text)


def merkleize(chunks, limit=None):
    size = 1
    while size < max(1, limit or len(chunks)):
        size *= 2
    layer = list(chunks) + [bytes(32)] * (size - len(chunks))
    while len(layer) > 1:
        layer = [sha256(layer[at] + layer[at + 1]) for at in range(0, len(layer), 2)]
    return layer[0]


def merkleize_progressive(chunks, leaves=1):
    if not chunks:
        return bytes(32)
    return sha256(merkleize(chunks[:leaves], leaves) + merkleize_progressive(chunks[leaves:], leaves * 4))


def pack(data):
    return [data[at : at + 32].ljust(32, b"\0") for at in range(0, len(data), 32)]


def uint64(value):
    return int(value).to_bytes(8, "little").ljust(32, b"\0")


def byte_vector(text):
    return merkleize(pack(unhex(text)))


def with_length(root, length):
    return sha256(root + length.to_bytes(32, "little"))


def container(*fields):
    return merkleize(fields)


def checkpoint(value):
    return container(uint64(value["epoch"]), unhex(value["root"]))


def attestation_data(data):
    return container(
        uint64(data["slot"]), uint64(data["index"]), unhex(data["beacon_block_root"]),
        checkpoint(data["source"]), checkpoint(data["target"]),
    )


def bitlist(text):
    """Its chunks without the last bit, which says how long it is, and its length."""
    number = int.from_bytes(unhex(text), "little")
    length = number.bit_length() - 1
    return pack((number ^ (1 << length)).to_bytes((length + 7) // 8, "little")), length


def aggregate_root(aggregate, epoch):
    chunks, length = bitlist(aggregate["aggregation_bits"])
    signature, committees = byte_vector(aggregate["signature"]), byte_vector(aggregate["committee_bits"])
    rest = [attestation_data(aggregate["data"]), signature, committees]
    if epoch < GLOAS_EPOCH:  # of Electra: MAX_VALIDATORS_PER_COMMITTEE * MAX_COMMITTEES_PER_SLOT bits
        return container(with_length(merkleize(chunks, 2048 * 64 // 256), length), *rest)
    fields = [with_length(merkleize_progressive(chunks), length), *rest]
    return sha256(merkleize_progressive(fields) + bytes([0b1111]).ljust(32, b"\0"))


def contribution_root(value):
    return container(
        uint64(value["slot"]), unhex(value["beacon_block_root"]), uint64(value["subcommittee_index"]),
        byte_vector(value["aggregation_bits"]), byte_vector(value["signature"]),
    )


def at_slot(slot):
    return int(slot) // SLOTS_PER_EPOCH


def object_of(request):
    """(object root, domain type, epoch; or a fork version and the chain's root)"""
    kind = request["type"].upper()
    message = next(one for name, one in request.items() if name != "fork_info" and isinstance(one, dict))
    message = message.get("block_header") or (message["data"] if isinstance(message.get("data"), dict) else message)
    if kind == "ATTESTATION":
        return attestation_data(message), "01000000", int(message["target"]["epoch"])
    if kind == "BLOCK_V2":
        roots = [unhex(message[name]) for name in ("parent_root", "state_root", "body_root")]
        header = container(uint64(message["slot"]), uint64(message["proposer_index"]), *roots)
        return header, "00000000", at_slot(message["slot"])
    if kind == "AGGREGATION_SLOT":
        return uint64(message["slot"]), "05000000", at_slot(message["slot"])
    if kind == "RANDAO_REVEAL":
        return uint64(message["epoch"]), "02000000", int(message["epoch"])
    if kind == "SYNC_COMMITTEE_MESSAGE":
        return unhex(message["beacon_block_root"]), "07000000", at_slot(message["slot"])
    if kind == "SYNC_COMMITTEE_SELECTION_PROOF":
        root = container(uint64(message["slot"]), uint64(message["subcommittee_index"]))
        return root, "08000000", at_slot(message["slot"])
    if kind == "SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF":
        contribution = message["contribution"]
        proof = byte_vector(message["selection_proof"])
        root = container(uint64(message["aggregator_index"]), contribution_root(contribution), proof)
        return root, "09000000", at_slot(contribution["slot"])
    if kind in ("AGGREGATE_AND_PROOF", "AGGREGATE_AND_PROOF_V2"):
        epoch = at_slot(message["aggregate"]["data"]["slot"])
        aggregate = aggregate_root(message["aggregate"], epoch)
        proof = byte_vector(message["selection_proof"])
        return container(uint64(message["aggregator_index"]), aggregate, proof), "06000000", epoch
    if kind == "PROPOSER_PREFERENCES":
        root = container(
            unhex(message["dependent_root"]), uint64(message["proposal_slot"]), uint64(message["validator_index"]),
            unhex(message["fee_recipient"]).ljust(32, b"\0"), uint64(message["target_gas_limit"]),
        )
        return root, "0d000000", at_slot(message["proposal_slot"])
    if kind == "VOLUNTARY_EXIT":
        root = container(uint64(message["epoch"]), uint64(message["validator_index"]))
        return root, "04000000", (CAPELLA, GENESIS_VALIDATORS_ROOT)
    if kind == "VALIDATOR_REGISTRATION":
        root = container(
            unhex(message["fee_recipient"]).ljust(32, b"\0"), uint64(message["gas_limit"]), uint64(message["timestamp"]),
            byte_vector(message["pubkey"]),
        )
        return root, "00000001", (GENESIS, bytes(32))
    if kind == "BUILDER_REQUEST_AUTH":
        data = unhex(message["data"])
        listed = with_length(merkleize(pack(data), 4096 // 32), len(data))
        return container(listed, uint64(message["slot"])), "0b000001", (GENESIS, bytes(32))
    raise ValueError(kind)


def signing_root(request):
    root, domain_type, signed_at = object_of(request)
    if isinstance(signed_at, int):
        version = bytes.fromhex([version for version, epoch in FORKS if epoch <= signed_at][-1])
        signed_at = (version, GENESIS_VALIDATORS_ROOT)
    version, chain = signed_at
    domain = bytes.fromhex(domain_type) + container(version.ljust(32, b"\0"), chain)[:28]
    return "0x" + container(root, domain).hex()


with open(sys.argv[1], encoding="utf-8") as file:
    vectors = json.load(file)["vectors"]
print(json.dumps({one["name"]: signing_root(one["request"]) for one in vectors if "signing_root" in one}))
