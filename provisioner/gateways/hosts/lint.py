"""Things in a template's tree that would surprise the owner of a clone of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_FINDINGS_OF_A_KIND = 20


@dataclass(frozen=True, kw_only=True)
class LintFinding:
    """`kind` is "p4config", "absolute_symlink", "case_clash" or "absolute_root"."""

    kind: str
    path: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def lint_tree(root: Path) -> list[LintFinding]:
    """Return what to know about a tree before it is cloned, at most 20 of each kind.

    Reads directories and links only; nothing is followed out of the tree.
    """
    kept: list[LintFinding] = []
    seen: dict[str, int] = {}
    for finding in _findings(root):
        seen[finding.kind] = seen.get(finding.kind, 0) + 1
        if seen[finding.kind] <= MOST_FINDINGS_OF_A_KIND:
            kept.append(finding)
    for kind, count in seen.items():
        if count > MOST_FINDINGS_OF_A_KIND:
            more = count - MOST_FINDINGS_OF_A_KIND
            kept.append(
                LintFinding(kind=kind, path="", sentence=f"{kind}: {more:,} more.")
            )
    return kept


def _findings(root: Path) -> Iterator[LintFinding]:
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        by_folded_name: dict[str, str] = {}
        with os.scandir(directory) as entries:
            for entry in entries:
                path = as_text(os.path.relpath(entry.path, root))
                yield from _entry_findings(entry, path=path)
                folded = entry.name.casefold()
                if folded in by_folded_name:
                    yield LintFinding(
                        kind="case_clash",
                        path=path,
                        sentence=f"{path} and {by_folded_name[folded]} differ in case "
                        "only: trouble on servers and systems that ignore case.",
                    )
                by_folded_name.setdefault(folded, path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))


def as_text(path: str) -> str:
    r"""Return a path with what is not UTF-8 in it shown as \xff."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _entry_findings(entry: os.DirEntry[str], *, path: str) -> Iterator[LintFinding]:
    if entry.name == ".p4config":
        yield LintFinding(
            kind="p4config",
            path=path,
            sentence=f"{path} names a client of the template; in a clone it would "
            "point its owner at the wrong one.",
        )
    if entry.is_symlink():
        target = as_text(os.readlink(entry.path))
        if target.startswith("/"):
            yield LintFinding(
                kind="absolute_symlink",
                path=path,
                sentence=f"{path} links to {target}: an absolute link leads out of a "
                "clone, maybe back into the template.",
            )
