"""Which depot paths a client view maps. No server is asked."""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.gateways.perforce.library import ViewMap
from provisioner.gateways.perforce.paths import folded


class DepotView:
    """The left side of a client view, as Perforce's own mapping reads it."""

    def __init__(self, view: Iterable[str], *, is_case_sensitive: bool = True) -> None:
        self._folds = not is_case_sensitive
        self._map = ViewMap(map(self._same, view))

    def touches(self, paths: Iterable[str]) -> bool:
        """Return whether the view maps any of these depot paths."""
        return any(self._map.includes(self._same(path)) for path in paths)

    def overlaps(self, path: str) -> bool:
        """Return whether the view maps files of this depot path or pattern."""
        lines = ViewMap.of_path(self._same(path)).joined(self._map)
        return any(not line.lstrip('"').startswith("-") for line in lines)

    def _same(self, text: str) -> str:
        """Return the text folded if the server ignores case."""
        return folded(text) if self._folds else text
