"""Paths as Perforce writes them, and as a host writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from provisioner.gateways.perforce.types import OpenedFile, Part

# "%" first: the other codes contain it.
_ESCAPES = (("%", "%25"), ("@", "%40"), ("#", "%23"), ("*", "%2A"))

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_CODE = re.compile("%(25|40|23|2A)", re.IGNORECASE)


def escape_path(name: str) -> str:
    """Return the name with characters that are special in a file argument as %xx.

    Source: p4 help filespec.
    """
    for character, code in _ESCAPES:
        name = name.replace(character, code)
    return name


def unescape_path(path: str) -> str:
    return _CODE.sub(lambda found: chr(int(found[1], 16)), path)


def folded(name: str) -> str:
    """Return a key that is equal for names that differ only in case.

    As a case-insensitive server compares them: by C's tolower on each byte, so only
    ASCII letters are folded.

    Source: StrPtr::SCompareF in the published client source.
    """
    return name.translate(_LOWER)


def client_path_to_local(path: str, *, client: str, root: str) -> str:
    """Return a path in local syntax, given in client syntax or local syntax.

    Servers differ in which of the two `reconcile` reports.
    """
    prefix = f"//{escape_path(client)}/"
    if not path.startswith(prefix):
        return path
    return str(PurePosixPath(root) / unescape_path(path.removeprefix(prefix)))


def local_place(file: OpenedFile, *, client: str, root: str) -> str:
    """Return a file's path from the client's root, "" if it is not mapped."""
    if not file.client_file:
        return ""
    local = client_path_to_local(file.client_file, client=client, root=root)
    return local.removeprefix(root.rstrip("/") + "/")


def pinned_files(client: str, *, change: int, parts: Sequence[Part]) -> list[str]:
    """Return the file arguments of a pin: everything first, then each part.

    Use them in this order: a part overrides what comes before it.
    """
    everything = f"//{escape_path(client)}/...@{change}"
    return [everything, *(f"{part.path}@{part.change}" for part in parts)]


def ignore_file_text(patterns: tuple[str, ...], *, root: str) -> str:
    """Return a P4IGNORE file for use outside the tree, as it would work in the root.

    Outside the tree, a pattern with a leading slash matches nothing, while one with a
    slash in the middle matches at any depth. So leading slashes are replaced by the
    root without its own.

    Source: p4 help ignore; tried with P4Python's is_ignored.
    """
    lines = []
    for pattern in patterns:
        negation = "!" if pattern.startswith("!") else ""
        rest = pattern.removeprefix("!")
        if rest.startswith("/"):
            rest = f"{root.strip('/')}/{rest.lstrip('/')}"
        lines.append(negation + rest)
    return "".join(f"{line}\n" for line in lines)
