"""`gateway.configuration`: how one Perforce server is set up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.errors import NO_CONFIGURABLES, NotPermitted
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import (
    Configurable,
    Filesystem,
    ProtectionsSummary,
    ServerUsage,
)

WIDE_NAMED = 10

# The message 6658 of the server.
_FILESYSTEM = re.compile(
    r"(?P<name>.+?) \(type (?P<fsType>\S+?)(?: mounted on (?P<mountpoint>.+?))?\) : "
    r".+ total \((?P<pctUsed>\d+)% full\)"
)


class Configuration(Facet):
    """What the server tells super and operator users about itself."""

    def read(self, names: Iterable[str]) -> list[Configurable]:
        """Return the configurables that are set, and those named, each once.

        Of a name that the server does not know there is none.

        Raises: NotPermitted.
        Source: p4 configure show.
        """
        with self._connected() as connection:
            accepted = {NO_CONFIGURABLES}
            shown = connection.run("configure", "show", accepted=accepted).records
            for name in sorted({*names} - {record["Name"] for record in shown}):
                with suppress(Refused):
                    shown += connection.run(
                        *("configure", "show", name), accepted=accepted
                    ).records
        found: dict[str, Configurable] = {}
        for record in shown:
            # The first one listed is in effect.
            found.setdefault(record["Name"], _configurable(record))
        return list(found.values())

    def filesystems(self) -> list[Filesystem]:
        """Return where the server keeps its files: P4ROOT, P4LOG, each depot, …

        Raises: NotPermitted.
        Source: p4 diskspace; whether a tagged answer is a record or the text is not
        documented, so both are read.
        """
        with self._connected() as connection:
            reply = connection.run("diskspace")
        texts = [_FILESYSTEM.fullmatch(text.strip()) for text in reply.texts]
        records = [*reply.records, *(found.groupdict() for found in texts if found)]
        return [
            Filesystem(
                name=str(record["name"]),
                fs_type=str(record["fsType"]),
                mount_point=str(record.get("mountpoint") or ""),
                percent_used=int(record["pctUsed"]),
            )
            for record in records
        ]

    def usage(self) -> ServerUsage:
        """Return how many users and files there are, as far as the server counts them.

        Raises: NotPermitted.
        Source: p4 license -u.
        """
        with self._connected() as connection:
            records = connection.run("license", "-u").records
        [record] = records or [{}]
        return ServerUsage(
            users=_count(record.get("userCount", "")),
            files=_count(record.get("fileCount", "")),
        )

    def protections(self) -> ProtectionsSummary | None:
        """Return how long and how wide the protections are, None if we may not ask.

        Source: p4 protects -a.
        """
        lines, wide = 0, list[str]()

        def take(record: Record) -> None:
            nonlocal lines
            lines += 1
            if is_wide(record["depotFile"]):
                wide.append(record["depotFile"])

        try:
            with self._connected() as connection:
                connection.run("protects", "-a", each=take)
        except NotPermitted:
            return None
        return ProtectionsSummary(
            lines=lines, wide_count=len(wide), wide=tuple(wide[:WIDE_NAMED])
        )


def is_wide(path: str) -> bool:
    """Return whether a path has a wildcard elsewhere than at its end."""
    return bool(re.search(r"\.\.\.|\*", re.sub(r"(\.\.\.|\*)\Z", "", path)))


def _configurable(record: Record) -> Configurable:
    return Configurable(
        name=record["Name"], value=record.get("Value", ""), source=record["Type"]
    )


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
