"""Which checks of verify.py and verify_key.py no case of the test vectors asks for: deletes each, and judges all again.

    mutants.py docs/examples test/vectors

A mutant lacks one check or one operand of a condition, or has a limit that is one more or one less. The first case with
another verdict kills it, as does an error. Prints the number of mutants and each survivor. What changes no verdict of
any evidence stands in EQUIVALENT, with the reason. Signatures are verified once: keys remember what they verified.
"""

import ast
import base64
import itertools
import json
import os
import pathlib
import sys
import types

# One mutant of so many is tried, as test/support/scale.ts says.
EVERY = 1 if os.environ.get("TEST_SCALE") else 10
CHECKS = {"demand", "form", "check"}
# They read arguments and files, and make no verdict.
READS_STATUS = {"read_images", "read_status", "once", "picked", "content_of"}
NOT_JUDGING = {"read_reference", "read_asked", "read_evidence", "read_json", "judge_vectors", "main", *READS_STATUS}
NEGATIVE = "no member of evidence may be negative"
DEPTH = "nothing that is accepted has more than three levels; the limit ends what is nested without end"
NAMES = "a name of another kind is no member, and refused as that"
SIZE = "600 KB of vectors: test/attestation/key-evidence.test.ts asks both verifiers at this edge"
TRUTH = "no member of evidence is false or true"
# By the mutant: why no evidence shows it. A test fails when one of them is killed, or is no mutant any more.
EQUIVALENT = {
    "1 -1 in: major in (0, 1)": NEGATIVE,
    "8 +1 in: depth <= 8": DEPTH,
    "8 -1 in: depth <= 8": DEPTH,
    "5 +1 in: self.data[self.at] >> 5 in (0, 1, 3)": NAMES,
    "1 +1 in: self.data[self.at] >> 5 in (0, 1, 3)": NAMES,
    "1 -1 in: self.data[self.at] >> 5 in (0, 1, 3)": NAMES,
    "20 +1 in: argument in (20, 21, 22)": TRUTH,
    "21 +1 in: argument in (20, 21, 22)": TRUTH,
    "21 -1 in: argument in (20, 21, 22)": TRUTH,
    "300000 +1 in: MAX_LINKS, MAX_CHARACTERS, MAX_ROW_CHARACTERS = (16, 300000, 32768)": SIZE,
    "300000 -1 in: MAX_LINKS, MAX_CHARACTERS, MAX_ROW_CHARACTERS = (16, 300000, 32768)": SIZE,
}


class RememberingKey:
    """A public key that verifies every signature once in all runs."""

    answers = {}

    def __init__(self, key, name):
        self.key, self.name = key, name

    def verify(self, signature, data, algorithm):
        asked = (self.name, bytes(signature), bytes(data), algorithm.algorithm.name)
        if asked not in self.answers:
            try:
                self.answers[asked] = self.key.verify(signature, data, algorithm)
            except Exception as error:  # raised again each time
                self.answers[asked] = error
        if self.answers[asked] is not None:
            raise self.answers[asked]


def remembering(ec):
    class Keys:
        @staticmethod
        def from_encoded_point(curve, point):
            key = ec.EllipticCurvePublicKey.from_encoded_point(curve, point)
            return RememberingKey(key, (curve.name, bytes(point)))

    return types.SimpleNamespace(EllipticCurvePublicKey=Keys, ECDSA=ec.ECDSA)


def mutants_of(tree):
    """What each mutant is, the node that it changes, and how."""
    outside = {id(node) for function in functions_of(tree) if function.name in NOT_JUDGING for node in ast.walk(function)}
    inside = {id(node): node for function in functions_of(tree) for node in ast.walk(function) if id(node) not in outside}
    for node in inside.values():
        yield from changes_of(node)
    for node in tree.body:  # MAX_…
        for number in ast.walk(node.value) if isinstance(node, ast.Assign) else []:
            if is_number(number) and number.value > 15 and number.value not in (0x80, 2**53):
                yield from limits_of(number, node)


def mutant_at(tree, at):
    return next(itertools.islice(mutants_of(tree), at, None))


def functions_of(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def changes_of(node):
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = getattr(node.value.func, "id", getattr(node.value.func, "attr", None))
        if name in CHECKS:
            yield "without: " + ast.unparse(node), node, without
    if isinstance(node, ast.BoolOp):
        for at in range(len(node.values)):
            yield f"operand {at} of: {ast.unparse(node)}", node, operand_dropped(at)
    if isinstance(node, ast.Compare):
        for number in filter(is_number, numbers_in([node.left, *node.comparators])):
            yield from limits_of(number, node)


def numbers_in(nodes):
    """Neither indexes nor arguments."""
    for node in nodes:
        yield node
        if not isinstance(node, (ast.Subscript, ast.Call)):
            yield from numbers_in(ast.iter_child_nodes(node))


def is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) is int


def limits_of(number, within):
    for step in (1, -1):
        yield f"{number.value} {step:+d} in: {ast.unparse(within)}", number, added(step)


def without(node):
    node.value = ast.Constant(None)


def operand_dropped(at):
    def change(node):
        node.values[at] = ast.Constant(isinstance(node.op, ast.And))

    return change


def added(step):
    def change(number):
        number.value += step

    return change


def load(sources, mutated=None, tree=None):
    """The programs as modules of their own, which import each other by name."""
    for name, source in sources.items():
        module = sys.modules[name] = types.ModuleType(name)
        code = ast.fix_missing_locations(tree) if name == mutated else source
        exec(compile(code, name, "exec"), module.__dict__)
        if hasattr(module, "ec"):
            module.ec = remembering(module.ec)
    return sys.modules["verify"], sys.modules["verify_key"]


def document_cases(vectors):
    def judge(programs, case):
        verify, _ = programs
        record = vectors["evidence"][case["evidence"]]
        pcrs = vectors["reference_values"].get(case["reference_values"])
        any_configuration = case.get("any_configuration", False)
        asked = verify.read_asked(case["judged_at"], case["max_age_seconds"], case["nonce"], pcrs, any_configuration)
        asked["root_sha256"] = case.get("root_sha256", vectors["root_sha256"])
        verdict, step, codes, *_ = verify.judge_whole(record["form"], base64.b64decode(record["base64"]), asked)
        return (verdict, step, codes) == (case["verdict"], case["step"], case["codes"])

    return [(judge, case) for case in vectors["cases"]]


def key_cases(vectors):
    def judge(programs, case):
        _, verify_key = programs
        return verify_key.judge_case(vectors, case) == case["fault"]

    return [(judge, case) for case in vectors["cases"]]


def is_killed(programs, cases):
    for at, (judge, case) in enumerate(cases):
        try:
            killed = not judge(programs, case)
        except (Exception, RecursionError):
            killed = True
        if killed:
            cases.insert(0, cases.pop(at))  # it may kill the next one, too
            return True
    return False


def main():
    folder, vectors = map(pathlib.Path, sys.argv[1:])
    names = ("verify_certificate", "verify", "verify_key")
    sources = {name: (folder / f"{name}.py").read_text() for name in names}
    documents = document_cases(json.loads((vectors / "verification-v1.json").read_text()))
    keys = key_cases(json.loads((vectors / "master-key-evidence-v1.json").read_text()))
    if is_killed(load(sources), documents + keys):
        sys.exit("the programs themselves do not judge as the vectors say")
    survivors, equivalent, count = [], set(EQUIVALENT), 0
    for name, source in sources.items():
        for at, what in enumerate([what for what, _, _ in mutants_of(ast.parse(source))]):
            count += 1
            if count % EVERY:
                equivalent.discard(what)  # it is not told
                continue
            tree = ast.parse(source)
            _, node, change = mutant_at(tree, at)
            place = f"{name}.py:{node.lineno}: {what}"
            change(node)
            if is_killed(load(sources, name, tree), keys if name == "verify_key" else documents):
                continue
            if what in EQUIVALENT:
                equivalent.discard(what)
            else:
                survivors.append(place)
    print(json.dumps({"mutants": count, "survivors": survivors, "killed_equivalents": sorted(equivalent)}, indent=1))


if __name__ == "__main__":
    main()
