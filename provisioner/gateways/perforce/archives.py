"""`gateway.archives`: depots, and whether their files are as they were submitted."""

from __future__ import annotations

from collections.abc import Callable

from provisioner.gateways.perforce.errors import VERIFY_FOUND
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record, as_number
from provisioner.gateways.perforce.types import DamagedRevision, Depot


class Archives(Facet):
    """The archives of a server, which administrators may verify."""

    def depots(self) -> list[Depot]:
        """Return all depots.

        Source: p4 depots.
        """
        with self._connected() as connection:
            records = connection.run("depots").records
        return [Depot(name=each["name"], kind=each["type"]) for each in records]

    def verify(self, depot: str, *, found: Callable[[DamagedRevision], None]) -> None:
        """Read all files of a depot; each that is lost or damaged goes to `found`.

        This may take a day, and ends within seconds once the caller may not act. A
        depot without files has none that is damaged.

        Raises: NotPermitted.
        Source: p4 help verify (-q: only these; -z: content that several revisions share
        once). Tagged, each is a record with `status`, as P4Java reads it; else it is
        the message 6874 with the same variables. Both are taken.
        """
        with self._connected() as connection:
            connection.run(
                *("verify", "-q", "-z", f"//{depot}/..."),
                each=lambda record: _tell(record, found),
                each_message={VERIFY_FOUND},
                is_bulk=True,
                is_silent=True,
            )


def _tell(record: Record, found: Callable[[DamagedRevision], None]) -> None:
    status = record.get("status", "").rstrip("!")
    if not status:
        return
    number = record.get("rev") or record.get("depotRev", "").lstrip("#")
    found(
        DamagedRevision(
            path=record["depotFile"],
            revision=as_number(number),
            change=as_number(record.get("change", "").removeprefix("change ")),
            action=record.get("action", ""),
            type=record.get("type", ""),
            status=status,
        )
    )
