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
        if self.count > len(self.found):
            return f"{self.count:,}, {len(self.found)} of them shown"
        if len(self.found) >= FINDINGS_SHOWN:
            return f"the first {len(self.found)}"
        return str(self.count)


def findings_of(found: dict[str, Any] | None) -> list[Findings]:
    """Return recorded findings in reading order, those with a known kind."""
    if not found:
        return []
    counts = found.get("counts", {})
    return [
        Findings(
            kind=kind,
            title=title,
            found=found[kind],
            count=counts.get(kind, {}).get("count", len(found[kind])),
            size_bytes=counts.get(kind, {}).get("bytes", 0),
        )
        for kind, title in FINDING_TITLES.items()
        if found.get(kind)
    ]
