#!/usr/bin/env python3
"""An independent verifier of the evidence of a strongroom enclave, written from docs/specification/evidence.md alone.

It needs Python 3.9, the package cryptography (38 or later; Debian: python3-cryptography), and verify_certificate.py,
which lies in the same folder. It trusts the root of AWS Nitro Enclaves by its digest, and the time and reference values
that it is given; nothing in the evidence. Nothing is fetched. A live connection (the nonce of its TLS exporter) is
beyond Python's ssl module.

    verify.py document.bin --pcrs pcrs.json --at 2026-01-03T20:41:07Z
    openssl s_client -connect HOST:9443 </dev/null | openssl x509 | verify.py - --pcrs pcrs.json --pcr 16=HEX
    verify.py --vectors test/vectors/verification-v1.json
"""

import argparse
import base64
import datetime
import hashlib
import json
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from verify_certificate import BASIC_CONSTRAINTS, CMW_EXTENSION, KEY_USAGE, P256, P384
from verify_certificate import Certificate, Refused, demand, values

ROOT_SHA256 = "641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b"
MEDIA_TYPE, DIGITAL_SIGNATURE, CERT_SIGN = "application/aws-nitro-document", 0x80, 0x04
BINDING_TAG = bytes.fromhex("7374726f6e67726f6f6d2072612d746c7320763100")
ES384_HEADER = bytes.fromhex("a1013822")
MAX_DOCUMENT_BYTES, MAX_TLS_CERTIFICATE_BYTES, CLOCK_SKEW_MS = 12288, 16384, 300_000
BASE64, UTC = "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", datetime.timezone.utc
EXIT = {"expected": 0, "not_authentic": 5, "not_expected": 6, "no_reference_values": 8, "partly_compared": 14}


class Reader:
    """CBOR (RFC 8949), the kinds that evidence has; `code` says what it is part of."""

    def __init__(self, data, code):
        self.data, self.code, self.at = data, code, 0

    def whole(self):
        item = self.item(0)
        self.demand(self.at == len(self.data), "bytes after the item")
        return item

    def demand(self, condition, detail):
        demand(condition, self.code, "CBOR: " + detail)

    def take(self, count):
        self.demand(count <= len(self.data) - self.at, "cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def head(self):
        major, low = divmod(self.take(1)[0], 32)
        if low < 24:
            return major, low
        if low == 31:
            return major, None
        self.demand(low <= 27 and major != 7, "a head that is reserved, or a float")
        return major, int.from_bytes(self.take(1 << (low - 24)), "big")

    def item(self, depth):
        self.demand(depth <= 8, "nested deeper than 8")
        major, argument = self.head()
        self.demand(argument is not None or major in (4, 5), "an indefinite length")
        if major in (0, 1):
            return argument if major == 0 else -1 - argument
        if major in (2, 3):
            content = self.take(argument)
            text = content.decode("utf-8", "replace")
            self.demand(major == 2 or text.encode() == content, "text that is not UTF-8")
            return content if major == 2 else text
        if major == 4:
            return [self.item(depth + 1) for _ in self.members(argument)]
        if major == 5:
            entries = {}
            for _ in self.members(argument):
                self.demand(self.at < len(self.data) and self.data[self.at] >> 5 in (0, 1, 3), "a map's key")
                key = self.item(depth + 1)
                self.demand(key not in entries, "a map repeats a key")
                entries[key] = self.item(depth + 1)
            return entries
        self.demand(major == 7 and argument in (20, 21, 22), "a kind that is not expected")
        return (False, True, None)[argument - 20]

    def members(self, count):
        yield from range(0 if count is None else count)
        while count is None and (self.at >= len(self.data) or self.data[self.at] != 0xFF):
            yield None
        self.at += 1 if count is None else 0


def cbor(value):
    """Bytes, text, lists and the empty map, in the deterministic encoding."""
    major = {bytes: 2, str: 3, list: 4, dict: 5}[type(value)]
    content = b"".join(map(cbor, value)) if major > 3 else value if major == 2 else value.encode()
    count = len(value if isinstance(value, (list, dict)) else content)
    if count < 24:
        return bytes([major << 5 | count]) + content
    size = next(size for size in (1, 2, 4, 8) if count < 1 << 8 * size)
    return bytes([major << 5 | 23 + size.bit_length()]) + count.to_bytes(size, "big") + content


def read_cose(data):
    code = "malformed_document"
    demand(len(data) <= MAX_DOCUMENT_BYTES, code, f"more than {MAX_DOCUMENT_BYTES} bytes")
    untagged = data[1:] if data[:1] == b"\xd2" else data
    parts = Reader(untagged, code).whole()
    demand(isinstance(parts, list) and len(parts) == 4, code, "no array of four")
    protected, unprotected, payload, signature = parts
    kinds = all(isinstance(part, bytes) for part in (protected, payload, signature))
    demand(kinds, code, "not two headers, payload and signature")
    demand(protected == ES384_HEADER, "wrong_algorithm", "the protected header is not exactly {1: -35}")
    demand(unprotected == {} and len(signature) == 96, code, "an unprotected header, or not 96 bytes of signature")
    demand(cbor(parts) == untagged, code, "not in the deterministic encoding")
    return payload, signature


def read_payload(payload):
    fields = Reader(payload, "malformed_payload").whole()
    check = lambda condition, detail: demand(condition, "malformed_payload", detail)
    sized = lambda value, least: isinstance(value, bytes) and least <= len(value) <= 1024
    check(isinstance(fields, dict), "not a map")
    optional = {"public_key", "user_data", "nonce"}
    known = {"module_id", "digest", "timestamp", "pcrs", "certificate", "cabundle"} | optional
    check(set(fields) <= known, "a member that is not known")
    name, made, pcrs, bundle = (fields.get(name) for name in ("module_id", "timestamp", "pcrs", "cabundle"))
    check(isinstance(name, str) and 1 <= len(name) <= 256, "module_id")
    check(fields.get("digest") == "SHA384", "digest")
    check(type(made) is int and 0 < made <= 253402300799999, "timestamp")
    check(isinstance(pcrs, dict) and len(pcrs) > 0, "pcrs")
    for index, value in pcrs.items():
        check(type(index) is int and 0 <= index <= 31, "pcrs: a register other than 0 to 31")
        check(isinstance(value, bytes) and len(value) == 48, f"PCR{index} is not of 48 bytes")
    check(sized(fields.get("certificate"), 1), "certificate")
    check(isinstance(bundle, list) and 1 <= len(bundle) <= 8 and all(sized(one, 1) for one in bundle), "cabundle")
    for member in optional:
        value = fields.get(member)
        check(value is None or sized(value, 1 if member == "public_key" else 0), member)
    return fields


def check_validity(certificate, asked, name):
    demand(asked["at"] + asked["tolerance"] >= certificate.begins, "not_yet_valid", name)
    demand(asked["at"] <= certificate.ends, "expired", name)


def check_use(certificate, depth):
    name, misuse = f"certificate {depth}", "certificate_misuse"
    demand(certificate.critical <= {BASIC_CONSTRAINTS, KEY_USAGE}, "unknown_critical_extension", name)
    key = certificate.key(P384)
    demand(key is not None, misuse, name + ": no key of P-384, or not signed with ECDSA and SHA-384")
    demand(certificate.is_authority == (depth > 0), misuse, name + ": an authority as the leaf, or none above it")
    demand(certificate.usage & (CERT_SIGN if depth > 0 else DIGITAL_SIGNATURE), misuse, name + ": its key usage")
    limit = certificate.path_length
    demand(limit is None or depth - 1 <= limit, misuse, name + ": too many authorities below it")
    return key


def is_issued_by(certificate, issuer, key):
    named, own = certificate.issuer_identifier, issuer.identifier
    is_named = named is None or own is None or named == own
    return is_named and certificate.issuer == issuer.subject and certificate.is_signed_with(key, P384)


def check_chain(fields, asked):
    ders = [fields["certificate"], *reversed(fields["cabundle"])]
    chain, keys = [Certificate(der) for der in ders], []
    root = hashlib.sha256(ders[-1]).hexdigest()
    demand(root == asked["root_sha256"], "untrusted_root", "SHA-256 " + root)
    for depth, certificate in enumerate(chain):
        check_validity(certificate, asked, f"certificate {depth}")
        keys.append(check_use(certificate, depth))
    for depth, issued in enumerate(zip(chain, chain[1:] + chain[-1:], keys[1:] + keys[-1:])):
        demand(is_issued_by(*issued), "broken_chain", f"certificate {depth}")
    return keys[0]


def open_certificate(der, asked):
    demand(len(der) <= MAX_TLS_CERTIFICATE_BYTES, "malformed_certificate", "too large")
    certificate = Certificate(der)
    extension = certificate.extensions.get(CMW_EXTENSION)
    demand(extension is not None, "no_evidence", "no extension id-pe-cmw")
    key = certificate.key(P256)
    demand(key is not None, "certificate_misuse", "no key of P-256, or not signed with ECDSA and SHA-256")
    check_validity(certificate, asked, "the TLS certificate")
    demand(certificate.is_signed_with(key, P256), "broken_chain", "not signed with its own key")
    inside = values(extension, "malformed_evidence")
    demand([one[0] for one in inside] == [4], "malformed_evidence", "not one OCTET STRING in DER")
    record = Reader(inside[0][1], "malformed_evidence").whole()
    good = isinstance(record, list) and len(record) == 3 and record[0] == MEDIA_TYPE and isinstance(record[1], bytes)
    demand(good and record[2] == 4, "malformed_evidence", "not the one known record")
    return record[1], BINDING_TAG + hashlib.sha384(certificate.spki).digest()


def take_steps(form, data, asked, found):
    """Yields the name of each step before it is taken; what the document says goes into `found`."""
    binding = None
    if form == "certificate":
        data, binding = open_certificate(data, asked)
    yield "cose"
    payload, signature = read_cose(data)
    yield "payload"
    found.update(read_payload(payload))
    yield "chain"
    key = check_chain(found, asked)
    yield "signature"
    signed = cbor(["Signature1", ES384_HEADER, b"", payload])
    r, s = (int.from_bytes(half, "big") for half in (signature[:48], signature[48:]))
    try:
        key.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA384()))
    except InvalidSignature:
        raise Refused("bad_signature", "the leaf's key did not sign this") from None
    yield "freshness"
    age = asked["at"] - found["timestamp"]
    demand(age >= -CLOCK_SKEW_MS, "from_the_future", f"made {-age} ms later")
    demand(age <= asked["max_age_seconds"] * 1000, "stale", f"{age} ms old")
    demand(asked["nonce"] in (None, found.get("nonce")), "nonce_mismatch", "another nonce, or none")
    yield "binding"
    demand(binding in (None, found.get("user_data")), "wrong_key", "user_data is not of this TLS key")
    yield "debug"
    for index in (0, 1, 2):
        demand(any(found["pcrs"].get(index, b"")), "debug", f"PCR{index} is zero or missing")
    yield "policy"
    demand(asked["reference"] is not None, "no_reference_values", "none were given")
    wrong = [index for index, values in sorted(asked["reference"].items()) if found["pcrs"].get(index) not in values]
    if wrong:
        raise Refused("wrong_pcr", ", ".join(f"PCR{index}" for index in wrong), len(wrong))


def judge(form, data, asked):
    """The verdict, the step that failed, its codes, a line for each step that was taken, and the document's members."""
    lines, found, step = [], {}, None
    try:
        for step in take_steps(form, data, asked, found):
            lines.append(step)
        return "expected", None, [], lines, found
    except Refused as refused:
        lines.append(f"FAILED: {refused.codes[0]}: {refused}")
        verdict = "not_expected" if step in ("debug", "policy") else "not_authentic"
        return refused.codes[0] if refused.codes[0] in EXIT else verdict, step, refused.codes, lines, found


def not_compared(form, asked):
    """What an expected document was compared with nothing in: its parent may have chosen it, or anybody shows it."""
    registers = [f"PCR{index}" for index in (16, 17) if index not in asked["reference"]]
    return registers if form == "certificate" else [*registers, "the TLS key"]


def judge_whole(form, data, asked):
    """As judge, but `expected` only where nothing was left out of the comparison."""
    verdict, *others = judge(form, data, asked)
    return ("partly_compared" if verdict == "expected" and not_compared(form, asked) else verdict, *others)


def read_reference(measurements, any_configuration):
    reference = {}
    for name, written in ((name, measurements[name]) for name in measurements if name != "HashAlgorithm"):
        if not re.fullmatch(r"PCR(0|[1-9]|[12][0-9]|3[01])", name):
            raise ValueError(f"{name} is no register: there are PCR0 to PCR31, and a flag is --pcr N=HEX")
        values = written if isinstance(written, list) else [written]
        if not 1 <= len(values) <= 16 or not all(type(v) is str and re.fullmatch("[0-9a-fA-F]{96}", v) for v in values):
            raise ValueError(name + " is not 1 to 16 values of 48 bytes of hex")
        reference[(index := int(name[3:]))] = {bytes.fromhex(value) for value in values}
        if index < 3 and bytes(48) in reference[index]:
            raise ValueError(name + ": zero is what an enclave in debug mode has")
    if 0 not in reference or (16 not in reference and not any_configuration):
        raise ValueError("PCR0 and PCR16 are needed; without PCR16 say --any-configuration")
    return reference


def read_asked(at, max_age_seconds, nonce, measurements, any_configuration):
    if nonce is not None and not re.fullmatch("([0-9a-fA-F]{2})+", nonce):
        raise ValueError(f"--nonce {nonce}: not hex: give the bytes of the nonce as pairs of hex digits")
    try:  # nothing can be subtracted from a time without a zone
        iso = datetime.datetime.now(UTC).isoformat() if at is None else re.sub("[zZ]$", "+00:00", at)
        since = datetime.datetime.fromisoformat(iso) - datetime.datetime.fromtimestamp(0, UTC)
    except (TypeError, ValueError):
        raise ValueError(f"--at {at}: write a time with its zone: 2026-01-03T20:41:07Z") from None
    return {
        "root_sha256": ROOT_SHA256,
        "at": round(since.total_seconds() * 1000),
        "tolerance": CLOCK_SKEW_MS if at is None else 0,
        "max_age_seconds": max_age_seconds,
        "nonce": None if nonce is None else bytes.fromhex(nonce),
        "reference": None if measurements is None else read_reference(measurements, any_configuration),
    }


def read_evidence(content):
    text = content.decode("latin-1")
    certificates = re.findall(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----", text)
    if len(certificates) > 1 or len(content) > 65536:
        raise ValueError("several certificates, or more than 65536 bytes: keep the attested one in a file of its own")
    if certificates:
        return "certificate", base64.b64decode(certificates[0])
    compact = "".join(text.split())
    if re.fullmatch("([0-9a-fA-F]{2})+", compact):
        return "document", bytes.fromhex(compact)
    return "document", base64.b64decode(compact) if compact and re.fullmatch(BASE64, compact) else content


def read_json(flag, path, kind, *names):  # what it holds, and the first member of these names and this kind
    try:
        with open(path, "rb") as file:
            content = json.load(file, object_pairs_hook=lambda m: dict(m) if len(dict(m)) == len(m) else None)
        return content, next(content[name] for name in names if isinstance(content.get(name), kind))
    except (ValueError, AttributeError, StopIteration) as error:
        problem = f"not JSON ({error})" if isinstance(error, ValueError) else f'no "{names[0]}", or a member twice'
        raise ValueError(f"{flag} {path}: {problem}; see what it takes: verify.py --help") from None


def judge_vectors(path):
    (vectors, cases), answers = read_json("--vectors", path, list, "cases"), []
    for case in cases:
        record, pcrs = vectors["evidence"][case["evidence"]], vectors["reference_values"].get(case["reference_values"])
        any_configuration = case.get("any_configuration", False)
        asked = read_asked(case["judged_at"], case["max_age_seconds"], case["nonce"], pcrs, any_configuration)
        asked["root_sha256"] = case.get("root_sha256", vectors["root_sha256"])
        answer = judge_whole(record["form"], base64.b64decode(record["base64"]), asked)
        answers.append(dict(zip(("name", "verdict", "step", "codes"), (case["name"], *answer))))
    print(json.dumps(answers, indent=1))
    wrong = [case["name"] for case, ours in zip(cases, answers) if any(case[k] != ours[k] for k in ours)]
    print(f"{len(answers)} cases, {len(wrong)} judged otherwise than stated", *wrong, sep="\n  ", file=sys.stderr)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", nargs="?", default="-", help="a document or a PEM certificate with one; - is stdin")
    flag = parser.add_argument
    flag("--pcrs", metavar="FILE", help="reference values: the pcrs.json of `strongroom eif build`, or nitro-cli's")
    flag("--pcr", metavar="N=HEX", action="append", default=[], help="one reference value; again for others")
    flag("--any-configuration", action="store_true", help="accept reference values without PCR16")
    flag("--at", metavar="TIME", help="judge as of this time, 2026-01-03T20:41:07Z; now when not given")
    flag("--max-age", metavar="SECONDS", type=int, default=10800, help="oldest document accepted; default %(default)s")
    flag("--nonce", metavar="HEX", help="what the document has to have as its nonce")
    flag("--vectors", metavar="FILE", help="judge every case of a file of test vectors instead")
    options = parser.parse_args()
    if options.vectors is not None:
        return judge_vectors(options.vectors)
    measurements = None if options.pcrs is None and not options.pcr else {}
    if options.pcrs is not None:
        _, measurements = read_json("--pcrs", options.pcrs, dict, "measurements", "Measurements")
    for register in {written.partition("=")[0] for written in options.pcr}:
        measurements["PCR" + register] = [w.partition("=")[2] for w in options.pcr if w.partition("=")[0] == register]
    asked = read_asked(options.at, options.max_age, options.nonce, measurements, options.any_configuration)
    if options.evidence == "-" and sys.stdin.isatty():
        print("verify.py: reading the evidence from this terminal, up to Ctrl-D (--help says more)", file=sys.stderr)
    with sys.stdin.buffer if options.evidence == "-" else open(options.evidence, "rb") as source:
        form, data = read_evidence(source.read(65537))
    verdict, _, codes, lines, found = judge_whole(form, data, asked)
    print(" ".join([verdict, *codes]) + "\n  steps:", *lines, sep="\n    ")
    if verdict == "partly_compared":
        print("  NOT compared:", ", ".join(not_compared(form, asked)))
    for index, value in sorted(found.get("pcrs", {}).items()):
        print(f"  PCR{index:<3} {value.hex() if verdict != 'not_authentic' else 'not evaluated'}")
    return EXIT[verdict]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError) as problem:
        sys.exit(f"verify.py: {problem}")
