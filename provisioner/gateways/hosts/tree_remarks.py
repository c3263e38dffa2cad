"""Things in a template's tree that would surprise the owner of a clone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.hosts.descent import directories
from provisioner.gateways.hosts.privileges import drop_privileges

MOST_FINDINGS_OF_A_KIND = 20


@dataclass(frozen=True, kw_only=True)
class TreeRemark:
    """`kind` is "p4config", "absolute_symlink", "case_clash", "privileged" or
    "absolute_root".
    """

    kind: str
    path: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def remarks_on_tree(root: Path) -> list[TreeRemark]:
    """Return findings about a tree before it is cloned, at most 20 of each kind.

    Set-uid and set-gid bits and file capabilities are removed, as a clone would hand
    them to its owner. Nothing else is changed, and no link is followed out of the tree.

    Raises: PermanentGatewayError (a bit cannot be removed); OSError; Busy.
    """
    kept: list[TreeRemark] = []
    seen: dict[str, int] = {}
    for finding in _findings(root):
        seen[finding.kind] = seen.get(finding.kind, 0) + 1
        if seen[finding.kind] <= MOST_FINDINGS_OF_A_KIND:
            kept.append(finding)
    for kind, count in seen.items():
        if count > MOST_FINDINGS_OF_A_KIND:
            more = count - MOST_FINDINGS_OF_A_KIND
            kept.append(
                TreeRemark(kind=kind, path="", sentence=f"{kind}: {more:,} more.")
            )
    return kept


def _findings(root: Path) -> Iterator[TreeRemark]:
    for directory in directories(root):
        by_folded_name: dict[str, str] = {}
        for entry in directory.entries:
            path = as_text(directory.path_of(entry.name))
            yield from _entry_findings(entry, above=directory.fd, path=path)
            folded = entry.name.casefold()
            if folded in by_folded_name:
                yield TreeRemark(
                    kind="case_clash",
                    path=path,
                    sentence=f"{path} and {by_folded_name[folded]} differ only in "
                    "case, which fails on systems that ignore case.",
                )
            by_folded_name.setdefault(folded, path)


def as_text(path: str) -> str:
    r"""Return a path as text, with bytes that are not UTF-8 as \xff."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _entry_findings(
    entry: os.DirEntry[str], *, above: int, path: str
) -> Iterator[TreeRemark]:
    if entry.name == ".p4config":
        yield TreeRemark(
            kind="p4config",
            path=path,
            sentence=f"{path} names a client of the template; in a clone it would "
            "name the wrong client.",
        )
    if entry.is_symlink():
        target = as_text(os.readlink(entry.name, dir_fd=above))
        if target.startswith("/"):
            yield TreeRemark(
                kind="absolute_symlink",
                path=path,
                sentence=f"{path} links to {target}: an absolute link leads out of a "
                "clone, perhaps into the template.",
            )
    elif entry.is_file(follow_symlinks=False):
        removed = drop_privileges(entry.name, above=above, path=path)
        if removed:
            yield TreeRemark(
                kind="privileged",
                path=path,
                sentence=f"{path} was {' and '.join(removed)}. That was removed: in a "
                "clone, whoever runs it would act as the clone's owner.",
            )
