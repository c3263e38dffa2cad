"""`gateway.log`: the text log of one Perforce server."""

from __future__ import annotations

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.errors import NO_LOG
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.types import LogPiece


class Log(Facet):
    """P4LOG, for accounts with super or operator access."""

    def read(self, *, offset: int, at_most: int) -> LogPiece:
        """Return what the log has from a byte on, up to so many bytes.

        Nothing where it ends before; where it is shorter, `next_offset` may be below
        `offset`. Each call is in the log itself.

        Raises: NotPermitted, Refused (there is no log; its bytes are not told as they
        are).
        Source: p4 logtail -b -s -m. It is asked for one block, as the library keeps two
        of several values with one name.
        """
        asked = ("logtail", "-b", str(at_most), "-s", str(offset), "-m", "1")
        with self._connected() as connection:
            records = connection.run(*asked, also_failures={NO_LOG}).records
        told = {name: value for record in records for name, value in record.items()}
        data = told.get("data", "").encode("utf-8", "surrogateescape")
        next_offset = int(told.get("offset", offset))
        # Blocks that a charset has changed could not be counted in bytes.
        if data and next_offset != offset + len(data):
            raise Refused(
                "p4 logtail tells other bytes than the log has. Follow the log by a "
                "worker on the server's host.",
                system="perforce",
                operation="logtail",
            )
        return LogPiece(data=data, next_offset=next_offset)
