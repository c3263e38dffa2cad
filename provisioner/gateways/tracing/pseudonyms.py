"""Other words for what belongs to a customer: the same for the same, in one trace.

A text is taken word by word. What separates words stays (`/`, `...`, `=`), so a path
is still a path; public words stay (`vocabulary`); every other word is replaced by what
a key of this trace makes of it. Nobody has that key once the trace is written, so
nobody can try which name gives which pseudonym.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import uuid
from collections.abc import Mapping
from typing import Any

from provisioner.gateways.tracing.vocabulary import WORDS

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# What says something of a server and nothing of a customer.
TIME = re.compile(
    r"\d{4}([-/])\d\d\1\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|P(?:\d{1,4}[YMWD]){0,4}(?:T(?:\d{1,4}[HMS]){1,3})?"
)
_ONTAP_RELEASE = re.compile(r"NetApp Release \d{1,2}\.\d{1,2}\.\d{1,2}(?=\W|P\d)")
_P4D_RELEASE = re.compile(r"P4D/[A-Z0-9_]{4,16}/20\d\d\.\d/\d{1,8}(?= |\Z)")
_IPV4 = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?![\w.])"
WORD = re.compile(_IPV4 + r"|[^\s/:;,=@#%()\[\]{}\"'.!<>|&+*?~^$`\\]+")
_ONLY_SIGNS = re.compile(r"[-_]+")


class Pseudonyms:
    """The words of one trace, by a key that is nowhere stored."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, value: Any) -> Any:
        """Return a JSON value with the words of its texts replaced; names stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.of(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item) for item in value]
        return value

    def text(self, text: str) -> str:
        """Return a text with its words replaced."""
        if TIME.fullmatch(text):
            return text
        for release in (_ONTAP_RELEASE, _P4D_RELEASE):
            if found := release.match(text):
                return found.group()
        return WORD.sub(lambda found: self.word(found.group()), text)

    def word(self, word: str) -> str:
        """Return what stands for a word: a uuid for a uuid, digits for digits."""
        if word in WORDS or _ONLY_SIGNS.fullmatch(word):
            return word
        digest = hmac.digest(
            self._key, word.encode("utf-8", "surrogatepass"), hashlib.sha256
        )
        if UUID.fullmatch(word):
            return str(uuid.UUID(bytes=digest[:16]))
        if "." in word:
            return _address(word, digest)
        if word.isdecimal():
            digits = str(int.from_bytes(digest) % 10 ** len(word)).zfill(len(word))
            return digits
        return f"n{digest.hex()[:10]}"


def _address(word: str, digest: bytes) -> str:
    """Return a private IPv4 address, of a network that is as large."""
    try:
        network = ipaddress.IPv4Network(word, strict=False)
    except ValueError:
        return f"n{digest.hex()[:10]}"
    if network.network_address == ipaddress.IPv4Address(0):
        return word
    address = ".".join(map(str, [10, *digest[:3]]))
    if "/" not in word:
        return address
    return str(ipaddress.IPv4Network(f"{address}/{network.prefixlen}", strict=False))
