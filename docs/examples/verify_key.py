#!/usr/bin/env python3
"""Who made the master key of a strongroom fleet, when, and by which image: written from docs/specification/evidence.md.

It takes the documents apart with verify.py, which lies in the same folder, and trusts what that trusts: the root of AWS
Nitro Enclaves, and the values that it is given. Ask the signer by an attested connection, and judge its answer:

    strongroom operator status --json | verify_key.py - --pcrs pcrs.json --ceremony HEX --deployment ID --network 0xROOT
    verify_key.py --vectors test/vectors/master-key-evidence-v1.json
"""

import argparse
import base64
import datetime
import hashlib
import json
import re
import sys

import verify

TAG, ROW_TAG = b"strongroom master-key v1\0", b"strongroom row v1\0"
MEMBERS = ("purpose", "counter", "deployment", "generation", "ceremony", "record", "origin", "previous")
ROW_MEMBERS = ("purpose", "deployment", "generation", "ceremony", "origin", "content")
MAX_LINKS, MAX_CHARACTERS, MAX_ROW_CHARACTERS = 16, 300_000, 32_768
# Of these something is proven, and it is of something else; of all others nothing is.
NOT_EXPECTED = ("debug", "other_record", "other_ceremony", "other_image")
COMPACT = {"separators": (",", ":"), "ensure_ascii": False}
DIGEST = re.compile("[0-9a-f]{96}", re.ASCII)


class Refused(Exception):
    def __init__(self, fault, detail):
        super().__init__(detail)
        self.fault = fault


def demand(condition, fault, detail):
    if not condition:
        raise Refused(fault, detail)


def whole(value):
    return type(value) is int and 1 <= value <= 2**53 - 1


def digest(value):
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def is_statement(value, members, purposes):
    """The members that links and rows have alike; a document of evidence is there too."""
    return (
        isinstance(value, dict)
        and tuple(value) == members + ("document",)
        and value["purpose"] in purposes
        and whole(value["generation"])
        and isinstance(value["deployment"], dict)
        and tuple(value["deployment"]) == ("network", "id")
        and all(isinstance(text, str) for text in value["deployment"].values())
        and digest(value["ceremony"])
        and isinstance(value["document"], str)
        and is_document(value["document"])
    )


def is_link(link):
    return (
        is_statement(link, MEMBERS, ("made", "wrapped"))
        and whole(link["counter"])
        and digest(link["record"])
        and all(link[name] is None or digest(link[name]) for name in ("origin", "previous"))
    )


def is_row(row):
    is_known = is_statement(row, ROW_MEMBERS, ("root_token", "seal_removed"))
    return is_known and digest(row["origin"]) and digest(row["content"])


def is_document(text):
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return len(data) <= verify.MAX_DOCUMENT_BYTES and base64.b64encode(data).decode() == text


def read_json(text, most):
    """One spelling, and no other; without its version."""
    demand(text is not None, "missing", "there is none")
    demand(len(text) <= most, "malformed", "too long")
    try:
        value = json.loads(text)
    except ValueError:
        raise Refused("malformed", "not JSON") from None
    demand(isinstance(value, dict), "malformed", "not evidence")
    written = json.dumps(value, **COMPACT)
    demand(written == text and list(value)[:1] == ["version"], "malformed", "another spelling")
    version = value.pop("version")
    demand(type(version) is int and version == 1, "malformed", "another version")
    return value


def read_links(text):
    """The evidence as a MASTER_KEY row has it."""
    value = read_json(text, MAX_CHARACTERS)
    demand(list(value) == ["links"], "malformed", "not evidence")
    links = value["links"]
    demand(isinstance(links, list) and 1 <= len(links) <= MAX_LINKS, "malformed", "not a list of links")
    demand(all(is_link(link) for link in links), "malformed", "a link has another form")
    return links


def read_row(text):
    """The evidence as a row beside it has it."""
    row = read_json(text, MAX_ROW_CHARACTERS)
    demand(is_row(row), "malformed", "it has another form")
    return row


def open_link(link, root_sha256):
    return open_statement(f"link {link['counter']}: ", link, (TAG, MEMBERS), root_sha256)


def open_statement(at, stated, form, root_sha256):
    """The document of a statement, judged at its own time: authentic, not of a debug mode, and of this statement."""
    data = base64.b64decode(stated["document"])
    try:
        timestamp = verify.read_payload(verify.read_cose(data)[0])["timestamp"]
    except verify.Refused as refused:
        raise Refused("not_authentic", at + str(refused)) from None
    asked = {"root_sha256": root_sha256, "at": timestamp, "tolerance": 0}
    asked.update(max_age_seconds=0, nonce=None, reference=None)
    verdict, step, codes, _, found = verify.judge("document", data, asked)
    demand(verdict != "not_authentic", "not_authentic", at + ", ".join(codes))
    demand(step != "debug", "debug", at + "made in debug mode")
    tag, members = form
    statement = json.dumps({name: stated[name] for name in members}, **COMPACT)
    binding = tag + hashlib.sha384(statement.encode()).digest()
    demand(found.get("user_data") == binding, "other_statement", at + "its document says something else")
    register = hashlib.sha384(bytes(48) + bytes.fromhex(stated["ceremony"])).digest()
    demand(found["pcrs"].get(17) == register, "other_statement", at + "PCR17 is of another ceremony")
    return {**stated, "data": data, "found": found}


def check_order(links):
    for index, link in enumerate(links):
        if index == 0:
            place = ("made", None, 1, None)
        else:
            before = links[index - 1]
            origin, previous = (hashlib.sha384(one["data"]).hexdigest() for one in (links[0], before))
            place = ("wrapped", origin, before["counter"] + 1, previous)
        follows = (link["purpose"], link["origin"]) == place[:2]
        gap = index == 1 and len(links) == MAX_LINKS and link["counter"] > place[2]
        follows = follows and (gap or (link["counter"], link["previous"]) == place[2:])
        demand(follows, "broken_chain", f"link {link['counter']} does not follow the one before it")
        if index > 0:
            demand(link["generation"] > before["generation"], "broken_chain", "of no later generation")
            demand(link["record"] != before["record"], "broken_chain", "of the same record")


def is_accepted(pcrs, asked):
    if asked["signature"] is not None and any(asked["signature"]) and pcrs.get(8) == asked["signature"]:
        return True
    return any(all(pcrs.get(index) in values for index, values in image.items()) for image in asked["images"])


def judge(links, asked):
    """The links, opened. Raises Refused with the first fault."""
    links = [open_link(link, asked["root_sha256"]) for link in links]
    check_order(links)
    for link in links:
        demand(link["deployment"] == asked["deployment"], "other_record", "of another deployment")
        demand(is_accepted(link["found"]["pcrs"], asked), "other_image", f"link {link['counter']}: another image")
    last = links[-1]
    of_record = (last["record"], last["generation"]) == (asked["record"], asked["generation"])
    demand(of_record, "other_record", "of another record")
    demand(last["ceremony"] in asked["ceremonies"], "other_ceremony", "of the ceremony " + last["ceremony"])
    return links


def judge_row(row, asked):
    """What an enclave wrote beside the master key. Raises Refused with the first fault."""
    row = open_statement("it: ", row, (ROW_TAG, ROW_MEMBERS), asked["root_sha256"])
    of_content = (row["purpose"], row["content"]) == (asked["purpose"], asked["content"])
    demand(of_content and row["deployment"] == asked["deployment"], "other_record", "of something else")
    demand(row["origin"] == asked["origin"], "other_record", "of another master key")
    demand(is_accepted(row["found"]["pcrs"], asked), "other_image", "another image")
    return row


def judge_case(vectors, case):
    """The fault of a case; null: none."""
    asked = read_terms(vectors, case)
    try:
        if "purpose" in asked:
            judge_row(read_row(case["evidence"]), asked)
        else:
            judge(read_links(case["evidence"]), asked)
    except Refused as refused:
        return refused.fault
    return None


def read_terms(vectors, case):
    terms = {**vectors["terms"], **case.get("terms", {})}
    images = [{int(name[3:]): {bytes.fromhex(image[name])} for name in image} for image in terms["images"]]
    signature = None if terms["signature"] is None else bytes.fromhex(terms["signature"])
    return {**terms, "images": images, "signature": signature, "root_sha256": vectors["root_sha256"]}


def read_images(measured, given):
    """Accepted values by register, of which an image has one each: of the file, or in their place those of --pcr."""
    values = {name: measured[name] for name in measured if name != "HashAlgorithm"}
    single = {}
    for text in given:
        name, _, value = text.partition("=")
        single.setdefault(name if name.startswith("PCR") else "PCR" + name, []).append(value)
    return {index: accepted for index, accepted in verify.read_reference({**values, **single}, True).items() if index < 3}


def read_status(text):
    """The custody of a status; a member twice is refused, as is what is no status of a signer."""
    status = json.loads(text, object_pairs_hook=once)
    custody = status.get("custody") if isinstance(status, dict) else None
    if not isinstance(custody, dict) or "master_key" not in custody:
        raise ValueError("it is no status of a signer that shows where its master key comes from")
    origin = custody["master_key"]
    is_shown = isinstance(origin, dict) and isinstance(origin.get("links"), list) and isinstance(origin.get("record"), str)
    if origin is not None and not is_shown:
        raise ValueError("its master key is shown in another form")
    return custody


def once(members):
    if len(dict(members)) != len(members):
        raise ValueError("a member is there twice")
    return dict(members)


def picked(value, members):
    """What is no object has no member: then the evidence has another form."""
    return {name: value.get(name) if isinstance(value, dict) else None for name in members + ("document",)}


def judge_vectors(path):
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    answers = {case["name"]: judge_case(vectors, case) for case in vectors["cases"]}
    print(json.dumps(answers, indent=1))
    wrong = [case["name"] for case in vectors["cases"] if answers[case["name"]] != case["fault"]]
    print(f"{len(answers)} cases, {len(wrong)} judged otherwise than stated", *wrong, sep="\n  ", file=sys.stderr)
    return 1 if wrong or not answers else 0


def content_of(name, row, root_token):
    """What the content has to be: of the file that the participants have, of the seal that the status shows."""
    if name == "seal_removal" or root_token is None:
        seal = row.get("seal")
        return hashlib.sha384(seal.encode()).hexdigest() if isinstance(seal, str) else row.get("content")
    with open(root_token, "rb") as file:
        return hashlib.sha384(file.read()).hexdigest()


def show(what, opened):
    moment = datetime.datetime.fromtimestamp(opened["found"]["timestamp"] / 1000, verify.UTC).isoformat()
    print(f"{what} at {moment}, generation {opened['generation']}")
    for index, value in sorted(opened["found"]["pcrs"].items()):
        print(f"     PCR{index:<3} {value.hex()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flag = parser.add_argument
    flag("status", nargs="?", default="-", help="the JSON of `operator status --json`; - is stdin")
    flag("--pcrs", metavar="FILE", action="append", default=[], help="pcrs.json of an accepted image; again for others")
    flag("--pcr", metavar="N=HEX", action="append", default=[], help="in place of the file's PCR N; again for others")
    flag("--ceremony", metavar="HEX", action="append", default=[], help="digest of an accepted ceremony")
    flag("--deployment", metavar="ID", help="signer_state.deployment_id, or the state table's name")
    flag("--network", metavar="0xROOT", help="the network's genesis validators root")
    flag("--root-token", metavar="FILE", help="the ciphertext of the root token, which has to be the one of the status")
    flag("--test-root", metavar="HEX", default=verify.ROOT_SHA256, help="a test authority: proves nothing of an enclave")
    flag("--vectors", metavar="FILE", help="judge every case of a file of test vectors instead")
    options = parser.parse_args()
    if options.vectors is not None:
        return judge_vectors(options.vectors)
    if not ((options.pcrs or options.pcr) and options.ceremony and options.deployment and options.network):
        parser.error("--pcrs or --pcr, --ceremony, --deployment and --network are needed: they say which key is the right one")
    files = [verify.read_json("--pcrs", path, dict, "measurements", "Measurements")[1] for path in options.pcrs]
    images = [read_images(measured, options.pcr) for measured in files or [{}]]
    with sys.stdin if options.status == "-" else open(options.status, encoding="utf-8") as source:
        custody = read_status(source.read())
    origin = custody["master_key"]
    try:
        demand(origin is not None, "missing", "the signer shows no evidence: it is sealed, or no enclave")
        links = [picked(link, MEMBERS) for link in origin["links"]]
        text = json.dumps({"version": 1, "links": links}, **COMPACT)
        links = read_links(text)
        asked = {"root_sha256": options.test_root, "images": images, "signature": None}
        asked["deployment"] = {"network": options.network, "id": options.deployment}
        asked.update(ceremonies=options.ceremony, record=origin["record"], generation=links[-1]["generation"])
        links = judge(links, asked)
        for link in links:
            show(f"{link['counter']}. {link['purpose']}", link)
        asked["origin"] = hashlib.sha384(links[0]["data"]).hexdigest()
        for name, purpose in (("root_token", "root_token"), ("seal_removal", "seal_removed")):
            row = custody.get(name)
            if row is None and name == "root_token":
                demand(options.root_token is None, "missing", "the status shows no root token")
                print("root_token: none is shown, and nothing is said of it")
            if row is None:
                continue
            stated = read_row(json.dumps({"version": 1, **picked(row, ROW_MEMBERS)}, **COMPACT))
            asked.update(purpose=purpose, content=content_of(name, row, options.root_token))
            show(f"{purpose}, SHA-384 {row['content']},", judge_row(stated, asked))
    except Refused as refused:
        print(f"{refused.fault}: {refused}")
        return 6 if refused.fault in NOT_EXPECTED else 5
    print("expected: an accepted image made this master key, and accepted images alone have wrapped it")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError, TypeError) as problem:
        sys.exit(f"verify_key.py: {problem}")
