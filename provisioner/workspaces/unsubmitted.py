"""Unsubmitted work that was found, as people read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from provisioner.workspaces.steps.provision import FINDINGS_SHOWN

FINDING_TITLES = {
    "opened": "Opened",
    "shelved": "Shelved",
    "pending": "Pending changes without files",
    "changed": "Changed, but not opened",
    "missing": "Missing",
    "untracked": "Untracked",
    "unchecked": "Could not be compared",
}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Work of one kind that retiring would lose."""

    kind: str
    title: str
    found: list[dict[str, Any]]
    count: int
    size_bytes: int

    @property
    def tally(self) -> str:
        """How many there are, and how many of them are kept here."""
        if self.kind == "shelved" and self.count > len(self.found):
            changes = "change" if len(self.found) == 1 else "changes"
            return f"{self.count:,} files in {len(self.found):,} {changes}"
        if self.count > len(self.found):
            return f"{self.count:,}, {len(self.found)} of them shown"
        if len(self.found) >= FINDINGS_SHOWN:
            return f"the first {len(self.found)}"
        return str(self.count)


def findings_of(found: dict[str, Any] | None, *, root: str = "") -> list[Findings]:
    """Return recorded findings in reading order, those with a known kind.

    Paths below `root` are those from there.
    """
    if not found:
        return []
    counts = found.get("counts", {})
    return [
        Findings(
            kind=kind,
            title=title,
            found=[_below(one, root) for one in found[kind]],
            count=counts.get(kind, {}).get("count", len(found[kind])),
            size_bytes=counts.get(kind, {}).get("bytes", 0),
        )
        for kind, title in FINDING_TITLES.items()
        if found.get(kind)
    ]


def _below(one: dict[str, Any], root: str) -> dict[str, Any]:
    if "path" not in one:
        return one
    return {**one, "path": str(one["path"]).removeprefix(root)}
