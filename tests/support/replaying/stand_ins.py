"""What stands here for a word of a trace: names, uuids and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.gateways.tracing.pseudonyms import UUID, WORD


class StandIns:
    """Words of a trace and what they are here; others are what they were."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def path(self, path: str) -> str:
        """Return a path of ONTAP's API; numbers in it are ids."""
        parts = path.split("/")
        return "/".join(self._ids.get(part) or self.of(part) for part in parts)

    def of(self, value: Any) -> Any:
        """Return a JSON value of the trace in words of here."""
        if isinstance(value, str):
            return WORD.sub(
                lambda found: self.words.get(found.group(), found.group()), value
            )
        if isinstance(value, Mapping):
            return {name: self.of(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item) for item in value]
        return value

    def learn(self, there: Any, here: Any) -> None:
        """Learn the uuids and ids of an answer from the same answer in the trace.

        Records are compared with those of the same name, or else in their order.
        """
        if isinstance(there, Mapping) and isinstance(here, Mapping):
            for name in there.keys() & here.keys():
                self.learn(there[name], here[name])
                if name == "id":
                    self._ids.setdefault(str(there[name]), str(here[name]))
        elif isinstance(there, list) and isinstance(here, list):
            named = {each.get("name"): each for each in here if _is_named(each)}
            for index, item in enumerate(there):
                twin = named.get(self.of(item["name"])) if _is_named(item) else None
                if twin is None and index < len(here):
                    twin = here[index]
                self.learn(item, twin)
        elif _is_uuid(there) and _is_uuid(here):
            self.words.setdefault(there, here)


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)


def _is_uuid(value: Any) -> bool:
    return isinstance(value, str) and UUID.fullmatch(value) is not None
