#!/usr/bin/env python3
"""Ask a signer for its keys and for one signature: sign.py URL BODY.json, with the token in the variable TOKEN.

It prints the signature, or the reason of a refusal, and exits 0 or 1. Python's standard library is enough.
"""

import json
import os
import sys
import urllib.error
import urllib.request


def call(url, body=None):
    # Without Accept the answer is the bare signature, as Web3Signer's.
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data=body, headers=headers)  # POST when there is a body
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def main(signer, path):
    try:
        keys = call(f"{signer}/api/v1/eth2/publicKeys")
        if not keys:
            sys.exit("the signer has no key that this token may use")
        with open(path, "rb") as file:
            print(call(f"{signer}/api/v1/eth2/sign/{keys[0]}", file.read())["signature"])
    except urllib.error.HTTPError as error:
        refusal = json.load(error)
        # A 412 is final. A 503 may be asked again: no signature was sent.
        sys.exit(f"{error.code} {refusal['reason']}: {refusal['message']} (request {refusal['request_id']})")
    except ConnectionError:
        sys.exit("no answer: a signer that refuses to list its keys closes the connection (its audit line says why)")


if __name__ == "__main__":
    main(*sys.argv[1:])
