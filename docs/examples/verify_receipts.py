#!/usr/bin/env python3
"""An independent verifier of the receipts of a strongroom signer, written from docs/specification/receipts.md alone.

It needs Python 3.9 and the package cryptography (38 or later; Debian: python3-cryptography). It judges attestation
documents with verify.py, which lies in the same folder, and trusts what that trusts. Nothing is fetched. Give it one
folder for each boot, laid out as the page says (identity, heads, tile/entries), and heads that you kept:

    verify_receipts.py receipts/9f86d081884c7d659a2feaa0c55ad015 receipts/d4735e3a265e16eee03f59718b9b5d03 --pcrs pcrs.json
    verify_receipts.py receipts/* --kept head-of-march.txt
    verify_receipts.py receipts/* --pcrs pcrs.json --signing-root 0x5f1c…
    verify_receipts.py --vectors test/vectors/receipts-v1.json
"""

import argparse
import base64
import hashlib
import json
import os
import re
import sys
from bisect import bisect_right
from datetime import datetime, timezone

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

GAPS = {"unattested", "no_entries", "removed_by_retention", "uncovered_entries", "open_end", "lost"}
ALWAYS = {"unlinked", "unlisted"}
IDENTITY = ("version", "kind", "public_key", "genesis_validators_root", "document")
STATEMENT = ("version", "sequence", "time", "previous", "before", "lost", "closed", "slashing", "latch")
STATEMENT += ("auth_revision", "retention_days")
CALLER_TAG, IDENTITY_TAG = b"strongroom caller v1\0", b"strongroom receipts v1\0"
MAX_ENTRY, MAX_HEAD, MAX_IDENTITY, MAX_DOCUMENT, MAX_LINES, MAX_NAMED = 320, 8192, 20480, 12288, 16, 16
MAX_COUNT, MAX_TIME, SETTLED, MAX_DAYS, DAY = 2**53 - 1, 253402300799999, 30_000, 3650, 86_400_000
WHOLE = {"from": 0, "to": float("inf"), "removable": -float("inf"), "unattested": False, "roots": ()}
TEXT = re.compile(r"strongroom/receipts/(attested|unattested)/([0-9a-f]{32})\n(0|[1-9][0-9]{0,15})\n([^\n]{44})\n([^\n]+)\n")
LINE, EXIT = re.compile(r"— ([^ +]+) ([A-Za-z0-9+/]+={0,2})"), {"whole": 0, "gaps": 12, "broken": 11, "missing": 13}
EMPTY = hashlib.sha256(b"").digest()


class Malformed(Exception):
    pass


def demand(condition):
    if not condition:
        raise Malformed


def is_count(value, most=MAX_COUNT):
    return type(value) is int and 0 <= value <= most


def is_text(value, pattern):
    return type(value) is str and re.fullmatch(pattern, value, re.ASCII) is not None


def is_digest(value):
    return is_text(value, "[0-9a-f]{64}")


def is_object(value, members):
    return type(value) is dict and tuple(value) == members


def read_base64(text):
    """Bytes in their one spelling."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise Malformed from None
    demand(base64.b64encode(data).decode() == text)
    return data


def read_json(text, members):
    """One object of version 1 in its one spelling."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed from None
    demand(is_object(value, members) and type(value["version"]) is int and value["version"] == 1)
    demand(write_json(value) == text)
    return value


def write_json(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# --- entries


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        demand(count <= len(self.data) - self.at)
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count):
        return int.from_bytes(self.take(count), "big")

    def text(self, pattern):
        text = self.take(self.number(1)).decode("latin-1")
        demand(is_text(text, pattern))
        return text


def read_entry(data):
    demand(len(data) <= MAX_ENTRY)
    source = Bytes(data)
    demand(source.number(1) == 1)
    outcome = source.number(1)
    demand(outcome in (1, 2))
    entry = {"time": source.number(8), "operation": source.text("[A-Z0-9_]{1,64}")}
    demand(entry["time"] <= MAX_TIME)
    entry["reason"] = source.text("" if outcome == 1 else "[a-z0-9_]{1,64}") or None
    entry["public_key"] = source.take(48).hex()
    present = source.number(1)
    demand(present < 16)
    for bit, name in enumerate(("slot", "epoch", "source_epoch", "target_epoch")):
        entry[name] = source.number(8) if present >> bit & 1 else None
        demand(entry[name] is None or entry[name] <= MAX_COUNT)
    has_root = source.number(1)
    demand(has_root == 1 or (has_root == 0 and outcome == 2))
    entry["signing_root"] = source.take(32).hex() if has_root else None
    entry["caller"] = source.take(32).hex()
    demand(source.at == len(data))
    return entry


def caller_digest(name, policies):
    texts = [name.encode(), *sorted(policy.encode() for policy in policies)]
    return hashlib.sha256(CALLER_TAG + b"".join(len(text).to_bytes(2, "big") + text for text in texts)).digest()


# --- the tree of RFC 9162, by its recursive definitions


def leaf_hash(entry):
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def split_of(size):
    return 1 << ((size - 1).bit_length() - 1)


def inclusion_root(index, size, leaf, proof):
    """The root that a proof leads to (section 2.1.3.1, read backwards)."""
    if size == 1:
        demand(not proof)
        return leaf
    demand(proof)
    left = split_of(size)
    if index < left:
        return node_hash(inclusion_root(index, left, leaf, proof[:-1]), proof[-1])
    return node_hash(proof[-1], inclusion_root(index - left, size - left, leaf, proof[:-1]))


def consistency_roots(first, size, known, proof):
    """Both roots that a proof leads to (section 2.1.4.1, read backwards); known is the older one until it is split."""
    if first == size:
        demand(len(proof) == (known is None))
        return (proof[0], proof[0]) if known is None else (known, known)
    demand(proof)
    left = split_of(size)
    if first <= left:
        older, newer = consistency_roots(first, left, known, proof[:-1])
        return older, node_hash(newer, proof[-1])
    older, newer = consistency_roots(first - left, size - left, None, proof[:-1])
    return node_hash(proof[-1], older), node_hash(proof[-1], newer)


class Tree:
    """Grows by leaves; keeps the roots of its perfect subtrees, largest first, with their sizes."""

    def __init__(self):
        self.size, self.parts = 0, []

    def append(self, leaf):
        part, width = leaf, 1
        while self.parts and self.parts[-1][1] == width:
            part, width = node_hash(self.parts.pop()[0], part), width * 2
        self.parts.append((part, width))
        self.size += 1

    def root(self):
        if not self.parts:
            return EMPTY
        root = self.parts[-1][0]
        for part, _ in reversed(self.parts[:-1]):
            root = node_hash(part, root)
        return root


def tile_path(level, index):
    digits = str(index)
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    return f"tile/{level}/" + "/".join(["x" + group for group in groups[:-1]] + groups[-1:])


# --- identities and heads


def read_identity(text):
    demand(len(text) <= MAX_IDENTITY)
    identity = read_json(text, IDENTITY)
    demand(identity["kind"] in ("attested", "unattested") and type(identity["public_key"]) is str)
    identity["key"] = read_base64(identity["public_key"])
    demand(len(identity["key"]) == 32 and is_text(identity["genesis_validators_root"], "0x[0-9a-f]{64}"))
    document = identity["document"]
    demand((document is None) == (identity["kind"] == "unattested") and (document is None or type(document) is str))
    demand(document is None or 1 <= len(read_base64(document)) <= MAX_DOCUMENT)
    identity["boot"] = hashlib.sha256(identity["key"]).hexdigest()[:32]
    return identity


def user_data_of(identity):
    line = write_json({**{name: identity[name] for name in IDENTITY}, "document": None})
    return IDENTITY_TAG + hashlib.sha384(line.encode()).digest()


def read_head(note):
    demand(len(note.encode()) <= MAX_HEAD)
    text, parted, signatures = note.partition("\n\n")
    text, lines = text + "\n", signatures.split("\n")
    demand(parted and lines.pop() == "" and 1 <= len(lines) <= MAX_LINES)
    found = TEXT.fullmatch(text)
    demand(found)
    kind, boot, size, root, line = found.groups()
    head = read_json(line, STATEMENT)
    demand(is_statement(head))
    head.update(kind=kind, boot=boot, size=int(size), root=read_base64(root), text=text, signatures=[])
    demand(is_count(head["size"]) and len(head["root"]) == 32)
    for signature in lines:
        found = LINE.fullmatch(signature)
        demand(found)
        head["signatures"].append((found[1], read_base64(found[2])))
    head["digest"] = hashlib.sha256(text.encode()).hexdigest()
    return head


def is_statement(head):
    first, before, slashing = head["sequence"] == 0, head["before"], head["slashing"]
    named = [] if before is None else is_object(before, ("heads", "gap")) and before["heads"]
    return (
        is_count(head["sequence"])
        and is_count(head["time"], MAX_TIME)
        and (head["previous"] is None if first else is_digest(head["previous"]))
        and (before is None) != first
        and type(named) is list
        and len(named) <= MAX_NAMED
        and all(is_digest(digest) for digest in named)
        and named == sorted(set(named))
        and (before is None or before["gap"] is None or (before["gap"] == "unreadable" and not named))
        and is_count(head["lost"])
        and type(head["closed"]) is bool
        and (slashing is None or is_object(slashing, ("store", "revision")))
        and all(is_text(value, "[A-Za-z0-9_:.-]{1,128}") for value in (slashing or {}).values())
        and head["latch"] in (None, "open", "sealed")
        and (head["auth_revision"] is None or is_count(head["auth_revision"]))
        and (head["retention_days"] is None or (is_count(head["retention_days"], MAX_DAYS) and head["retention_days"] > 0))
    )


def is_signed(head, key):
    origin = f"strongroom/receipts/{head['kind']}/{head['boot']}"
    key_hash = hashlib.sha256(origin.encode() + b"\n\1" + key).digest()[:4]
    ours = [data for name, data in head["signatures"] if name == origin and data[:4] == key_hash]
    if len(ours) != 1 or len(ours[0]) != 68:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(ours[0][4:], head["text"].encode())
    except InvalidSignature:
        return False
    return True


# --- the checks


class Removed(bytes):
    """The leaf's hash of an entry that is not at hand."""


def judge(boots, is_attested, asked=WHOLE):
    """The verdict, each finding as (boot, code), and what is known of each entry with a signing root that is asked for,
    as (root, outcome, boot, index, head, kind): nothing where logs are broken. A boot is (identity, heads, entries)."""
    findings, known, shown, kinds = [], {}, {}, {}
    for written, notes, entries in boots:
        try:
            identity = read_identity(written)
        except Malformed:
            findings.append(("", "malformed_identity"))
            continue
        boot = identity["boot"]
        if boot in known:
            findings.append((boot, "two_logs"))
            continue
        found = []
        if identity["document"] is None:
            found.append("unattested")
            accepted = asked["unattested"]
        else:
            accepted = is_attested(identity)
            found += [] if accepted else ["not_attested"]
        kinds[boot] = identity["kind"], accepted
        known[boot], shown[boot] = take_heads(identity, notes, found), entries
        judge_order(known[boot], found)
        findings += [(boot, code) for code in found]
    answers, last_used, attested = [], {}, {boot for boot, kind in kinds.items() if kind == ("attested", True)}
    for boot, heads in known.items():
        found = []
        until = removable_until(boot, known, attested, asked["removable"])
        read = judge_entries(heads, shown[boot], size_at(heads, until), found)
        kind, accepted = kinds[boot]
        begin = size_at(heads, asked["from"] - 1)
        used = [(index, entry) for index, entry in read if accepted and entry["signing_root"] in asked["roots"]]
        for index, entry in used:
            answers.append((entry["signing_root"], entry["reason"] or "signed", boot, index, cover(heads, index), kind))
        last_used[boot] = max((entry["time"] for _, entry in used), default=None)
        is_before = any(index < begin for index, _ in used)
        removed = (shown[boot] or [])[begin : size_at(heads, until)]
        if not is_before and not any(type(entry) is Removed for entry in removed):
            found[:] = [code for code in found if code != "removed_by_retention"]
        if heads and heads[0]["sequence"] == 0:
            others = {name: others for name, others in known.items() if name != boot and others}
            judge_first(heads[0], others, earlier_than_all(kind, known, kinds), found)
        findings += [(boot, code) for code in found]
    findings = [(boot, code) for boot, code in findings if is_asked(code, known.get(boot), asked, last_used.get(boot))]
    codes = {code for _, code in findings}
    verdict = "whole" if not codes else "gaps" if codes <= GAPS | ALWAYS else "broken"
    return verdict, findings, [] if verdict == "broken" else answers


def cover(heads, index):
    """The sequence of the first head that covers the entry."""
    by_size = sorted(heads, key=lambda head: head["size"])
    return by_size[bisect_right([head["size"] for head in by_size], index)]["sequence"]


def earlier_than_all(kind, known, kinds):
    """What the first head of the earliest boot of this kind names: the time before all that is at hand."""
    begins = [(heads[0]["time"], boot) for boot, heads in known.items() if heads and kinds[boot][0] == kind]
    return (known[min(begins)[1]][0]["before"] or {"heads": ()})["heads"]


def is_asked(code, heads, asked, used):
    """Whether a finding is of the span. Used is the time of the latest entry that was found in the boot, or None."""
    if code not in GAPS or not heads:
        return True
    if code in ("open_end", "uncovered_entries"):
        return heads[-1]["time"] < asked["to"] or used is not None and used >= asked["to"]
    return used is not None or heads[0]["time"] < asked["to"] and heads[-1]["time"] >= asked["from"]


def removable_until(boot, known, attested, until):
    """Entries under heads that are no later may be gone, by its own heads, those of attested boots, the auditor."""
    saying = [head for name, heads in known.items() if name == boot or name in attested for head in heads]
    days = [(head["time"], head["retention_days"]) for head in saying if head["retention_days"] is not None]
    return max([until, *(time - count * DAY for time, count in days)])


def size_at(heads, time):
    """Of the last head that is no later."""
    return ([0] + [head["size"] for head in heads if head["time"] <= time])[-1]


def take_heads(identity, notes, found):
    heads = {}
    for note in notes:
        try:
            head = read_head(note)
        except Malformed:
            found.append("malformed_head")
            continue
        if (head["kind"], head["boot"]) != (identity["kind"], identity["boot"]):
            found.append("other_boot")
        elif not is_signed(head, identity["key"]):
            found.append("bad_signature")
        elif heads.setdefault(head["sequence"], head)["digest"] != head["digest"]:
            found.append("two_logs")
    return [heads[sequence] for sequence in sorted(heads)]


def judge_order(heads, found):
    if not heads or heads[0]["sequence"] != 0:
        found.append("missing_head")
    for before, head in zip(heads, heads[1:]):
        if head["sequence"] != before["sequence"] + 1:
            found.append("missing_head")
        elif head["previous"] != before["digest"]:
            found.append("broken_chain")
        if any(head[name] < before[name] for name in ("size", "time", "lost")):
            found.append("went_back")
        if before["closed"]:
            found.append("after_end")
    if heads and not heads[-1]["closed"]:
        found.append("open_end")
    if heads and heads[-1]["lost"] > 0:
        found.append("lost")


def judge_entries(heads, entries, removable, found):
    """@returns what heads cover, as (index, entry)."""
    stated = {}
    for head in heads:
        stated.setdefault(head["size"], set()).add(head["root"])
    covered, tree, codes, read = max(stated, default=0), Tree(), set(), []
    if entries is None:
        found += ["no_entries"] if covered > 0 else []
        return read
    for count in range(covered + 1):
        if count > 0:
            if count > len(entries):
                codes.add("missing_entries")
                break
            entry = entries[count - 1]
            if type(entry) is Removed:
                codes.add("removed_by_retention" if count <= removable else "missing_entries")
            elif attempt(read_entry, entry) is None:
                codes.add("malformed_entry")
            else:
                read.append((count - 1, read_entry(entry)))
            tree.append(entry if type(entry) is Removed else leaf_hash(entry))
        if count in stated and stated[count] != {tree.root()}:
            codes.add("other_root")
    if len(entries) > covered:
        codes.add("uncovered_entries")
    found += sorted(codes)
    return read


def judge_first(first, others, earlier, found):
    time, before = first["time"], first["before"]
    if before["gap"] is not None:
        found.append("unlinked")
        return
    places = {head["digest"]: (boot, at) for boot, heads in others.items() for at, head in enumerate(heads)}
    ran_on = {boot for boot, heads in others.items() if heads[-1]["time"] >= time}
    named = set()
    for digest in before["heads"]:
        if digest not in places:
            found.append("unlisted" if digest in earlier else "unknown_head")
            continue
        boot, at = places[digest]
        named.add(boot)
        following = others[boot][at + 1 : at + 2]
        if following and not (boot in ran_on and following[0]["time"] > time - SETTLED):
            found.append("rolled_back")
    earlier = {boot: heads for boot, heads in others.items() if heads[0]["time"] < time}
    last = {boot: [head["time"] for head in heads if head["time"] < time][-1] for boot, heads in earlier.items()}
    for boot in sorted(earlier, key=lambda boot: (-last[boot], boot))[:MAX_NAMED]:
        if boot not in named and not (boot in ran_on and earlier[boot][0]["time"] > time - SETTLED):
            found.append("not_named")


# --- vectors, folders


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except Malformed:
        return None


def judge_vectors(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    wrong, answers, count = [], {}, 0

    def compare(name, ours, stated):
        nonlocal count
        count += 1
        if ours != stated:
            wrong.append(name)

    for case in vectors["entries"]:
        compare(case["name"], attempt(read_entry, bytes.fromhex(case["hex"])), case["members"])
    tree, roots = Tree(), {0: EMPTY}
    for index in range(max((case["size"] for case in vectors["trees"]), default=0)):
        tree.append(leaf_hash(index.to_bytes(8, "big")))
        roots[index + 1] = tree.root()
    for case in vectors["trees"]:
        compare(f"tree of {case['size']}", roots[case["size"]].hex(), case["root"])
    for case in vectors["inclusion"]:
        index, size, proof = case["index"], case["size"], [bytes.fromhex(part) for part in case["proof"]]
        root = attempt(inclusion_root, index, size, bytes.fromhex(case["leaf"]), proof) if index < size else None
        compare(f"inclusion of {index} in {size}", root == roots[size], case["holds"])
    for case in vectors["consistency"]:
        first, size, proof = case["first"], case["size"], [bytes.fromhex(part) for part in case["proof"]]
        both = attempt(consistency_roots, first, size, roots[first], proof)
        compare(f"consistency of {first} and {size}", both == (roots[first], roots[size]), case["holds"])
    for number, path in vectors["paths"].items():
        compare(f"path of {number}", tile_path(0, int(number)), path)
    for case in vectors["logs"]:
        boots, documents = boots_of(case), vectors["documents"]
        is_attested = lambda one: documents.get(one["document"]) == user_data_of(one).hex()  # noqa: E731
        verdict, findings, known = judge(boots, is_attested, {**WHOLE, **case.get("asked", {})})
        ours = {"verdict": verdict, "faults": sorted({code for _, code in findings}), "known": shown_known(known)}
        compare(case["name"], ours, {**{"known": []}, **{name: case[name] for name in ours if name in case}})
        answers[case["name"]] = ours
    print(json.dumps(answers, indent=1))
    print(f"{count} cases, {len(wrong)} judged otherwise than stated", *wrong, sep="\n  ", file=sys.stderr)
    return 1 if wrong or not count else 0


def shown_known(known):
    return sorted(" ".join(map(str, answer)) for answer in known)


def boots_of(case):
    def entry(one):
        return base64.b64decode(one) if type(one) is str else Removed(base64.b64decode(one["hash"]))

    return [
        (boot["identity"], boot["heads"], boot["entries"] and [entry(one) for one in boot["entries"]])
        for boot in case["boots"]
    ]


def read_file(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def read_boot(folder, kept):
    identity = read_file(folder, "identity").decode().removesuffix("\n")
    heads = [
        read_file(parent, name).decode()
        for parent, _, names in os.walk(os.path.join(folder, "heads"))
        for name in sorted(names)
        if re.fullmatch("[0-9]{3}", name)
    ]
    boot = getattr(attempt(read_identity, identity), "get", {}.get)("boot", "no boot")
    return identity, heads + [head for head in kept if f"/{boot}\n" in head.split("\n\n")[0]], read_entries(folder)


def read_entries(folder):
    """The full tiles, those of hashes where entries were removed, then the widest that is not full; None without any."""
    entries, index = [], 0
    while True:
        path, hashes = (os.path.join(folder, tile_path(level, index)) for level in ("entries", 0))
        bundle = path if os.path.exists(path) else widest(path + ".p")
        some = read_bundle(read_file(bundle)) if bundle else []
        entries += some
        if bundle != path:
            if not os.path.exists(hashes):
                return entries if bundle or index > 0 else None
            data = read_file(hashes)
            entries += [Removed(data[at : at + 32]) for at in range(32 * len(some), len(data), 32)]
        index += 1


def widest(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    widths = [name for name in names if re.fullmatch("[1-9][0-9]{0,2}", name)]
    return os.path.join(folder, max(widths, key=int)) if widths else None


def read_bundle(data):
    source, entries = Bytes(data), []
    while source.at < len(data):
        entries.append(source.take(source.number(2)))
    return entries


def read_time(text):
    time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int((time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def document_judge(pcrs, root_sha256):
    """By verify.py, at the document's own time, with the measurements of the image."""
    import verify

    reference = None
    if pcrs is not None:
        _, measurements = verify.read_json("--pcrs", pcrs, dict, "measurements", "Measurements")
        reference = verify.read_reference(measurements, True)

    def is_attested(identity):
        data = base64.b64decode(identity["document"])
        asked = {"root_sha256": root_sha256 or verify.ROOT_SHA256, "at": None, "tolerance": 0, "max_age_seconds": 0}
        asked.update(nonce=None, reference=reference)
        try:
            asked["at"] = verify.read_payload(verify.read_cose(data)[0])["timestamp"]
        except verify.Refused:
            return False
        verdict, _, _, _, found = verify.judge("document", data, asked)
        return verdict == "expected" and found.get("user_data") == user_data_of(identity)

    return is_attested


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flag = parser.add_argument
    flag("boots", nargs="*", metavar="FOLDER", help="the folder of one boot")
    flag("--kept", metavar="FILE", action="append", default=[], help="a head that you kept; again for others")
    flag("--from", dest="begin", metavar="TIME", help="of a span: gaps of other times are left out; RFC 3339 or a day")
    flag("--to", dest="end", metavar="TIME", help="where the span ends")
    flag("--retention-days", metavar="N", type=int, help="entries of ended logs may be gone after so many days")
    flag("--signing-root", metavar="ROOT", action="append", default=[], help="what was signed; again for others")
    flag("--unattested", action="store_true", help="what logs of plain services say counts, too: anybody can make one")
    flag("--pcrs", metavar="FILE", help="reference values of the image; without them nothing is attested")
    flag("--test-root", metavar="HEX", help="a test authority: proves nothing of an enclave")
    flag("--vectors", metavar="FILE", help="judge every case of a file of test vectors instead")
    options = parser.parse_args()
    if options.vectors is not None:
        return judge_vectors(options.vectors)
    if not options.boots:
        parser.error("the folders of the boots are needed")
    kept = [read_file(path).decode() for path in options.kept]
    # A boot that ended before its first head was kept has no checkpoint, and no later boot names it.
    logs = [folder for folder in options.boots if os.path.exists(os.path.join(folder, "checkpoint"))]
    if not logs:
        sys.exit("verify_receipts.py: no folder holds a log")
    boots = [read_boot(folder, kept) for folder in logs]
    asked = dict(WHOLE)
    asked.update({name: read_time(time) for name, time in (("from", options.begin), ("to", options.end)) if time})
    if options.retention_days is not None:
        asked["removable"] = int(datetime.now(timezone.utc).timestamp() * 1000) - options.retention_days * DAY
    roots = [root.lower().removeprefix("0x") for root in options.signing_root]
    if not all(is_digest(root) for root in roots):
        parser.error("--signing-root is 32 bytes of hex")
    asked.update(unattested=options.unattested, roots=set(roots))
    verdict, findings, known = judge(boots, document_judge(options.pcrs, options.test_root), asked)
    print(verdict, *(f"{boot or 'a boot'}: {code}" for boot, code in findings), sep="\n  ")
    for root, outcome, boot, index, head, kind in known:
        print(f"0x{root} {outcome}: entry {index} of boot {boot}, in head {head}, {kind}")
    missing = sorted(asked["roots"] - {answer[0] for answer in known if answer[1] == "signed"})
    if verdict == "broken" or not missing:
        return EXIT[verdict]
    print(*(f"0x{root} is in no accepted log as signed" for root in missing), sep="\n")
    return EXIT["missing"]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Malformed:
        sys.exit("verify_receipts.py: a bundle of entries has another form")
    except (OSError, ValueError, KeyError) as problem:
        sys.exit(f"verify_receipts.py: {problem}")
