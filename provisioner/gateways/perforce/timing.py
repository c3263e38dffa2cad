"""`gateway.timing`: how long commands take, as a developer's `p4` would see it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from provisioner.gateways.perforce.clients import Clients
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import ClientSpec

DESCRIPTION = "Cloneyard times commands from here. Nothing is ever in it."


class Timing(Facet):
    """Commands whose answer nobody reads, and the client that they are run from."""

    def ensure_client(self, name: str) -> None:
        """Ensure that there is an empty client, readonly where the server can.

        Its view is a directory of its own, as one of whole depots costs the server
        more. Safe to repeat.

        Raises: Refused (no depot for its view, a limit).
        Source: p4 depots; p4 client -i.
        """
        with self._connected() as connection:
            clients = Clients.on(connection)
            if clients.find(name) is not None:
                return
            kinds = clients.types()
            depots = connection.run("depots").records
            local = [d["name"] for d in depots if d.get("type") == "local"]
            depot = min(local, default="depot")
            clients.save(
                ClientSpec(
                    name=name,
                    owner=self.account.user,
                    root=f"/nowhere/{name}",
                    description=DESCRIPTION,
                    type="readonly" if "readonly" in kinds else "",
                    view=(f"//{depot}/{name}/... //{name}/...",),
                )
            )

    def seconds_of(self, command: Sequence[str], *, client: str) -> float:
        """Run a command on a connection of its own; return how long all of it took.

        That is from connecting to the last row, which is thrown away.

        Raises: any GatewayError that the command has.
        """
        began = time.monotonic()
        with self._connected(client) as connection:
            connection.run(*command, each=_ignore)
            return time.monotonic() - began


def _ignore(record: Record) -> None:
    """Throw a row away."""
