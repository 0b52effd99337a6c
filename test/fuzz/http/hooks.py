"""What the generator of requests cannot know: the network and the keys of this signer. Of requests that fit the
document, most then reach the signing and the records, and not only the first refusal."""

import os
import random
import re

import schemathesis
from hypothesis import strategies

ROOT = os.environ["FUZZ_GENESIS_VALIDATORS_ROOT"]
KEYS = os.environ["FUZZ_PUBLIC_KEYS"].split(",")
OWN_ACCESSOR = os.environ["FUZZ_OWN_ACCESSOR"]
FORKS = [(previous, current, epoch) for previous, current, epoch in
         (fork.split(":") for fork in os.environ["FUZZ_FORKS"].split(","))]
"""Of those that are changed; the others stay as they were made."""
SHARE = 0.8


HEX = re.compile(r"^\^(?:\(0\[xX\]\)\?)?\(?((?:\[0-9a-fA-F\]\{\d+\}\|?)+)\)?([+*]|\{1,\})?\$$")
MAX_BYTES = 64
"""Of a value of any length."""


def strategy_of(lengths, repeated):
    """Hexadecimal values of a number of digits, or of any number of bytes."""
    if repeated is not None:
        bounds = [(0 if repeated == "*" else 1, MAX_BYTES)]
    else:
        bounds = [(digits // 2, digits // 2) for digits in lengths]
    made = strategies.one_of(*(strategies.binary(min_size=least, max_size=most) for least, most in bounds))
    return made.map(lambda value: "0x" + value.hex())


def quicken(schema):
    """Long hexadecimal values and names in any case, as formats and lists: from patterns, the generator drew them for
    minutes."""
    if isinstance(schema, list):
        for one in schema:
            quicken(one)
    if not isinstance(schema, dict):
        return
    pattern = schema.get("pattern")
    found = HEX.match(pattern) if isinstance(pattern, str) else None
    if found is not None:
        del schema["pattern"]
        lengths = [int(digits) for digits in re.findall(r"\{(\d+)\}", found[1])]
        schema["format"] = "hex-" + "-".join(map(str, lengths)) + (found[2] or "")
        schemathesis.openapi.format(schema["format"], strategy_of(lengths, found[2]))
    elif isinstance(pattern, str) and "][" in pattern and schema.get("examples"):
        del schema["pattern"]
        schema["enum"] = [name for example in schema["examples"] for name in (example, example.lower())]
    for one in schema.values():
        quicken(one)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            quicken(operation.get("requestBody"))
            quicken(operation.get("parameters"))


def fit(value):
    if isinstance(value, list):
        for one in value:
            fit(one)
    if not isinstance(value, dict):
        return
    for name in ("signingRoot", "signing_root"):
        value.pop(name, None)
    if "genesis_validators_root" in value:
        value["genesis_validators_root"] = ROOT
    if "current_version" in value:
        value["previous_version"], value["current_version"], value["epoch"] = random.choice(FORKS)
    for name in ("pubkeys", "identifiers"):
        if isinstance(value.get(name), list):
            value[name] = random.sample(KEYS, random.randint(1, len(KEYS)))
    if "pubkey" in value:
        value["pubkey"] = random.choice(KEYS)
    for one in value.values():
        fit(one)


@schemathesis.hook
def before_call(context, case, kwargs):
    # Who ends its own token is refused from then on, and asks nothing any more.
    if case.method.upper() == "DELETE" and (case.path_parameters or {}).get("accessor") == OWN_ACCESSOR:
        case.path_parameters["accessor"] = "acc_" + "0" * 32
    if random.random() < SHARE and isinstance(case.body, (dict, list)):
        fit(case.body)
