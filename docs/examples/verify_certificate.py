"""X.509 certificates of evidence, in the one form that docs/specification/evidence.md#certificates has.

verify.py uses it. It reads DER byte by byte, so that what a certificate is depends on no version of any library. The
package cryptography verifies signatures, and knows the two curves. It refuses what is not of the form.
"""

import datetime
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

CMW_EXTENSION, BASIC_CONSTRAINTS, KEY_USAGE, SUBJECT_KEY, AUTHORITY_KEY = map(  # object identifiers
    bytes.fromhex, ("2b06010505070123", "551d13", "551d0f", "551d0e", "551d23")
)
P384, P256 = (  # curve; its SubjectPublicKeyInfo up to the point; the AlgorithmIdentifier that it signs with; hash
    (curve, bytes.fromhex(spki), bytes.fromhex("300a06082a8648ce3d0403" + last), hashed)
    for curve, spki, last, hashed in (
        (ec.SECP384R1, "3076301006072a8648ce3d020106052b81040022036200", "03", hashes.SHA384),
        (ec.SECP256R1, "3059301306072a8648ce3d020106082a8648ce3d030107034200", "02", hashes.SHA256),
    )
)
UTC = datetime.timezone.utc


class Refused(Exception):
    """The evidence fails a check; `codes` has one code, or wrong_pcr for each register."""

    def __init__(self, code, detail, count=1):
        super().__init__(detail)
        self.codes = [code] * count


def demand(condition, code, detail):
    if not condition:
        raise Refused(code, detail)


class Certificate:
    """An X.509 certificate in the one form that the page has; what it does not name stays bytes."""

    def __init__(self, der):
        ((tag, content, _),) = shaped(der, 1)
        form(tag == 0x30, "no SEQUENCE")
        (tag, _, self.signed), (_, _, self.algorithm), (bits, signature, _) = found = shaped(content, 3)
        form([one[0] for one in found] == [0x30, 0x30, 0x03] and signature[:1] == b"\0", "its three parts")
        self.signature, parts = signature[1:], values(values(self.signed)[0][1])
        tags = [part[0] for part in parts]
        form(tags[:7] == [0xA0, 2, 0x30, 0x30, 0x30, 0x30, 0x30] and tags[7:] in ([], [0xA3]), "its members")
        form(parts[0][1] == b"\x02\x01\x02", "not of version 3")
        form(parts[2][2] == self.algorithm, "it names two signature algorithms")
        self.begins, self.ends = (read_time(*time[:2]) for time in shaped(parts[4][1], 2))
        self.issuer, self.subject, self.spki = parts[3][2], parts[5][2], parts[6][2]
        self.extensions, self.critical = {}, set()
        for tag, entry, _ in values(only(parts[7][1], 0x30)) if parts[7:] else []:
            form(tag == 0x30, "an extension")
            entry = values(entry)
            flag = entry.pop(1)[:2] if len(entry) == 3 else None
            form(flag in (None, (1, b"\xff")) and [one[0] for one in entry] == [6, 4], "an extension")
            form(entry[0][1] not in self.extensions, "an extension is there twice")
            self.extensions[entry[0][1]] = entry[1][1]
            self.critical |= {entry[0][1]} if flag else set()
        self.is_authority, self.path_length = self.read_constraints(self.extensions.get(BASIC_CONSTRAINTS))
        self.usage = self.read_usage(self.extensions.get(KEY_USAGE))
        identifier, named = self.extensions.get(SUBJECT_KEY), self.extensions.get(AUTHORITY_KEY)
        self.identifier = None if identifier is None else only(identifier, 4)
        named = [] if named is None else values(only(named, 0x30))
        self.issuer_identifier = named[0][1] if named and named[0][0] == 0x80 else None

    @staticmethod
    def read_constraints(value):
        found = [] if value is None else values(only(value, 0x30))
        form(len(found) < 3 and (not found or found[0][:2] == (1, b"\xff")), "basicConstraints")
        limit = found[1][:2] if len(found) == 2 else (2, b"\0")
        form(limit[0] == 2 and len(limit[1]) == 1 and limit[1][0] < 128, "pathLenConstraint")
        return bool(found), limit[1][0] if len(found) == 2 else None

    @staticmethod
    def read_usage(value):
        if value is None:
            return 0
        bits = only(value, 3)
        form(0 < len(bits[1:]) < 3 and bits[-1] % (2 << bits[0]) == 1 << bits[0], "keyUsage")
        return bits[1]

    def key(self, kind):
        """Its key, when key and signature are of this kind; None otherwise."""
        curve, spki, algorithm, _ = kind
        if self.algorithm != algorithm or not self.spki.startswith(spki):
            return None
        try:  # of 97 or 65 bytes, so it takes the uncompressed form alone
            return ec.EllipticCurvePublicKey.from_encoded_point(curve(), self.spki[len(spki) :])
        except ValueError:
            return None

    def is_signed_with(self, key, kind):
        try:
            return key.verify(self.signature, self.signed, ec.ECDSA(kind[3]())) is None
        except InvalidSignature:
            return False


def form(condition, detail):
    demand(condition, "malformed_certificate", "not of the known form: " + detail)


def values(der, code="malformed_certificate"):
    """DER values, one behind the other: tag, content, and all of it. Lengths are definite and the shortest."""
    found = []
    while der:
        length, start = (der[1:2] or b"\xff")[0], 2
        if length > 127:
            digits = der[2 : length - 126]
            length, start = int.from_bytes(digits, "big"), length - 126
            least = 128 if len(digits) == 1 else 256
            demand(len(digits) <= 2 and length >= least, code, "a length of DER")
        demand(start + length <= len(der), code, "cut off")
        found.append((der[0], der[start : start + length], der[: start + length]))
        der = der[start + length :]
    return found


def shaped(der, count):
    found = values(der)
    form(len(found) == count, f"not {count} values")
    return found


def only(der, tag):
    ((found, content, _),) = shaped(der, 1)
    form(found == tag, f"not one value with the tag {tag}")
    return content


def read_time(tag, content):
    text = content.decode("latin-1")
    if tag == 0x17:
        text = ("20" if text < "50" else "19") + text
    form(tag in (0x17, 0x18) and re.fullmatch("[0-9]{14}Z", text) and text >= "195", "its validity")
    try:
        time = datetime.datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refused("malformed_certificate", "its validity") from None
    return (time - datetime.datetime.fromtimestamp(0, UTC)) // datetime.timedelta(milliseconds=1)
