"""`gateway.processes`: the processes of one Perforce server."""

from __future__ import annotations

import re

from provisioner.gateways.errors import Busy
from provisioner.gateways.perforce.connection import PROGRAM
from provisioner.gateways.perforce.errors import PROCESS_IS_YOUNG
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import ServerProcess

_WRITE_LOCK = re.compile(r"Write\s*:\s*(?P<table>db\.\S+)")


class Processes(Facet):
    """What runs on the server, for accounts with super or operator access."""

    def list(self) -> list[ServerProcess]:
        """Return all processes, idle connections and background ones included.

        Without the one that answers this.

        Raises: Refused (p4 monitor is switched off), NotPermitted.
        Source: p4 monitor show -a -l -e.
        """
        with self._connected() as connection:
            records = connection.run("monitor", "show", "-a", "-l", "-e").records
        return [
            process
            for process in map(_process, records)
            if not (
                process.command == "monitor" and process.program.startswith(PROGRAM)
            )
        ]

    def locked_tables(self) -> set[str]:
        """Return the tables that are locked for writing at this moment.

        Nobody else reads or writes those. Locks of single clients are left out.

        Raises: NotPermitted.
        Source: p4 lockstat; its tagged output is not documented, so lines are read.
        """
        with self._connected() as connection:
            lines = connection.run("lockstat").texts
        found = [_WRITE_LOCK.fullmatch(line.strip()) for line in lines]
        return {match["table"] for match in found if match}

    def end(self, number: int) -> None:
        """Mark a process for termination; it ends at its next own check.

        Which may be half a minute away, so look for the effect. Safe to repeat.

        Raises: NotFound (it has ended), Busy (it is too young), NotPermitted.
        Source: p4 monitor terminate; db.monitor.minruntime, db.monitor.interval.
        """
        with self._connected() as connection:
            reply = connection.run("monitor", "terminate", str(number))
        for message in reply.messages:
            if message.id == PROCESS_IS_YOUNG:
                raise Busy(
                    message.text,
                    system="perforce",
                    operation="monitor terminate",
                    remote_code=str(message.id),
                )


def _process(record: Record) -> ServerProcess:
    return ServerProcess(
        number=int(record["id"]),
        state=record["status"],
        user=record["user"],
        program=record.get("prog", ""),
        client=record.get("client", ""),
        host=record.get("host", ""),
        command=record["command"],
        arguments=record.get("args", ""),
        seconds=_seconds(record["time"]),
    )


def _seconds(elapsed: str) -> int:
    """Return the seconds of hh:mm:ss, where the hours may have any number of digits."""
    hours, minutes, seconds = map(int, elapsed.split(":"))
    return (hours * 60 + minutes) * 60 + seconds
