"""`gateway.archives`: depots, and whether their files are as they were submitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
        """Read all revisions of a depot; each lost or damaged one goes to `found`.

        This may take a day, and ends within seconds once the caller may not act. A
        depot without files has none that is damaged.

        Raises: NotPermitted.
        Source: p4 help verify (-q: only these; -z: content that several revisions share
        once). Tagged, each is a record with `status`, as P4Java reads it; else it is
        the message 6874 with the same variables. Both are taken.
        """
        self._verify("-q", "-z", f"//{depot}/...", found=found)

    def verify_shelved(
        self, depot: str, *, found: Callable[[DamagedRevision], None]
    ) -> None:
        """Read all files of a depot that are shelved, as `verify` does revisions.

        Shelves that an edge server has for itself are at that server alone.

        Raises: NotPermitted, CommandFailed (a server older than 2015.1).
        Source: "p4 verify" of the command reference (-S goes with -q, not with -z);
        "Verifying shelved files" of the guide to deployments at many sites.
        """

        def tell(revision: DamagedRevision) -> None:
            found(replace(revision, revision=None))

        self._verify("-S", "-q", f"//{depot}/...", found=tell)

    def _verify(
        self, *arguments: str, found: Callable[[DamagedRevision], None]
    ) -> None:
        with self._connected() as connection:
            connection.run(
                *("verify", *arguments),
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
