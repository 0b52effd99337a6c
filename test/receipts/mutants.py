"""Which checks of verify_receipts.py no case of the test vectors asks for: deletes each, and judges all cases again.

    mutants.py docs/examples/verify_receipts.py test/vectors/receipts-v1.json

The mutants are those of ../operator/attestation/mutants.py: without a check, without an operand, a limit moved by one.
The first case with another answer kills one. Signatures are verified once: keys remember what they verified.
"""

import ast
import json
import pathlib
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "operator" / "attestation"))
import mutants as shared  # noqa: E402

# They read folders and arguments, and make no verdict.
READERS = {"read_file", "read_boot", "read_entries", "read_bundle", "read_time", "widest", "boots_of", "document_judge"}
shared.NOT_JUDGING = {"attempt", "judge_vectors", "main", *READERS}
LONGEST = "an entry of its form has at most 286 bytes, an identity at most 17,000 characters"
BEHIND = "what is taken behind the end leaves the place behind it, which the last check of an entry refuses"
LINES = "without an empty line there are no lines"
LENGTH = "Ed25519 refuses a signature of another length"
OWN = "a first head names no head that comes after it, and is not before itself"
# By mutant: why no vector shows it. A test fails when one of them is killed, or is no mutant any more.
LIMITS = "MAX_ENTRY, MAX_HEAD, MAX_IDENTITY, MAX_DOCUMENT, MAX_LINES, MAX_NAMED = (320, 8192, 20480, 12288, 16, 16)"
EQUIVALENT = {
    **{f"{limit} {step} in: {LIMITS}": LONGEST for limit in (320, 20480) for step in ("+1", "-1")},
    "without: demand(len(data) <= MAX_ENTRY)": LONGEST,
    "without: demand(len(text) <= MAX_IDENTITY)": LONGEST,
    "without: demand(count <= len(self.data) - self.at)": BEHIND,
    "operand 0 of: parted and lines.pop() == '' and (1 <= len(lines) <= MAX_LINES)": LINES,
    "operand 1 of: len(ours) != 1 or len(ours[0]) != 68": LENGTH,
    "operand 0 of: name != boot and others": OWN,
}


def load(source, tree=None):
    module = types.ModuleType("verify_receipts")
    code = source if tree is None else ast.fix_missing_locations(tree)
    exec(compile(code, "verify_receipts", "exec"), module.__dict__)
    real, module.Ed25519PublicKey = module.Ed25519PublicKey, types.SimpleNamespace()
    module.Ed25519PublicKey.from_public_bytes = lambda key: RememberingKey(real, key)
    return module


class RememberingKey:
    answers = {}

    def __init__(self, real, key):
        self.real, self.key = real, bytes(key)

    def verify(self, signature, data):
        asked = (self.key, bytes(signature), bytes(data))
        if asked not in self.answers:
            try:
                self.answers[asked] = self.real.from_public_bytes(self.key).verify(signature, data)
            except Exception as error:  # raised again each time
                self.answers[asked] = error
        if self.answers[asked] is not None:
            raise self.answers[asked]


def cases_of(vectors):
    """Functions of a program: whether it answers as the vectors say."""
    documents = vectors["documents"]
    roots = {}

    def entry(case):
        data = bytes.fromhex(case["hex"])
        return lambda one: one.attempt(one.read_entry, data) == case["members"]

    def tree(case):
        def judge(one):
            grown = one.Tree()
            for index in range(case["size"]):
                grown.append(one.leaf_hash(index.to_bytes(8, "big")))
            return grown.root().hex() == case["root"]

        return judge

    def inclusion(case):
        proof, root = [bytes.fromhex(part) for part in case["proof"]], roots.get(case["size"])

        def judge(one):
            index, size = case["index"], case["size"]
            if index >= size:
                return not case["holds"]
            found = one.attempt(one.inclusion_root, index, size, bytes.fromhex(case["leaf"]), proof)
            return (found == root) == case["holds"]

        return judge

    def log(case):
        def judge(one):
            boots = one.boots_of(case)

            def is_attested(own):
                return documents.get(own["document"]) == one.user_data_of(own).hex()

            verdict, findings, known = one.judge(boots, is_attested, {**one.WHOLE, **case.get("asked", {})})
            ours = (verdict, sorted({code for _, code in findings}), one.shown_known(known))
            return ours == (case["verdict"], case["faults"], case.get("known", []))

        return judge

    for case in vectors["trees"]:
        roots[case["size"]] = bytes.fromhex(case["root"])

    def consistency(case):
        first, size, proof = case["first"], case["size"], [bytes.fromhex(part) for part in case["proof"]]
        if first not in roots or size not in roots:
            return lambda one: True
        return lambda one: (
            (one.attempt(one.consistency_roots, first, size, roots[first], proof) == (roots[first], roots[size]))
            == case["holds"]
        )

    def path(number, written):
        return lambda one: one.tile_path(0, int(number)) == written

    return [
        *map(log, vectors["logs"]),
        *map(entry, vectors["entries"]),
        *map(inclusion, vectors["inclusion"]),
        *map(consistency, vectors["consistency"]),
        *(path(number, written) for number, written in vectors["paths"].items()),
        *map(tree, vectors["trees"]),
    ]


def is_killed(program, cases):
    for at, judge in enumerate(cases):
        try:
            killed = not judge(program)
        except (Exception, RecursionError):
            killed = True
        if killed:
            cases.insert(0, cases.pop(at))  # it may kill the next one, too
            return True
    return False


def main():
    source = pathlib.Path(sys.argv[1]).read_text()
    cases = cases_of(json.loads(pathlib.Path(sys.argv[2]).read_text()))
    if is_killed(load(source), cases):
        sys.exit("the program itself does not judge as the vectors say")
    survivors, equivalent = [], set(EQUIVALENT)
    mutants = [what for what, _, _ in shared.mutants_of(ast.parse(source))]
    count = len(mutants)
    for at, what in enumerate(mutants):
        if at % shared.EVERY:
            equivalent.discard(what)  # it is not told
            continue
        tree = ast.parse(source)
        _, node, change = shared.mutant_at(tree, at)
        place = f"verify_receipts.py:{node.lineno}: {what}"
        change(node)
        try:
            program = load(source, tree)
        except Exception:  # no program at all
            continue
        if is_killed(program, cases):
            continue
        if what in EQUIVALENT:
            equivalent.discard(what)
        else:
            survivors.append(place)
    print(json.dumps({"mutants": count, "survivors": survivors, "killed_equivalents": sorted(equivalent)}, indent=1))


if __name__ == "__main__":
    main()
