"""What the facets of the gateway share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Self

from provisioner.gateways.errors import NotFound
from provisioner.gateways.perforce.connection import (
    NEUTRAL_CLIENT,
    Connection,
    TicketHolder,
    connected,
    permit_files,
)
from provisioner.gateways.perforce.errors import NO_SUCH_CLIENT
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import PerforceAccount


class Facet:
    """Verbs of one Perforce server, as one user. Any thread may use them at any time.

    Each call opens a connection of its own, unless they were made `on` an open one.
    """

    def __init__(
        self,
        account: PerforceAccount,
        *,
        holder: TicketHolder,
        connection: Connection | None = None,
    ) -> None:
        self.account = account
        self._holder = holder
        self._connection = connection

    @classmethod
    def on(cls, connection: Connection) -> Self:
        """Return verbs that use this open connection, for use inside another verb.

        A verb for another client, or one that tracks locks, opens its own all the same.
        """
        return cls(connection.account, holder=connection.holder, connection=connection)

    @classmethod
    def for_own_files(cls, account: PerforceAccount) -> Self:
        """Return verbs that may read and write files, as `permit_files` says."""
        permit_files()
        return cls(account, holder=TicketHolder())

    def _connected(
        self, client: str = NEUTRAL_CLIENT, *, tracks: bool = False
    ) -> AbstractContextManager[Connection]:
        ours = self._connection
        if (
            ours is not None
            and client in (NEUTRAL_CLIENT, ours.client)
            and tracks <= ours.tracks
        ):
            return nullcontext(ours)
        return connected(
            self.account, holder=self._holder, client=client, tracks=tracks
        )


def form_of(connection: Connection, client: str) -> Record:
    """Return the form of an existing client.

    Raises: NotFound.
    Source: p4 client -o.
    """
    # The library gives no record of a form that it cannot read, as of a name with a
    # line end.
    forms = connection.run("client", "-o", client).records
    if not forms or "Update" not in forms[0]:
        raise NotFound(
            f"There is no client {client}.",
            system="perforce",
            operation="client -o",
            remote_code=str(NO_SUCH_CLIENT),
        )
    return forms[0]
