"""The server's log, in p4d's format: blocks that other tools parse.

Source: P4LOG, `server` and `track` in p4 help configurables; go-libp4dlog reads it.
"""

from __future__ import annotations

import logging
import os
import resource
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from provisioner.lab.perforce import octets
from provisioner.lab.perforce.locks import Use

_HEADER = "Perforce server info:\n"


class BlockFormatter(logging.Formatter):
    """Writes blocks unchanged, and everything else as an error block.

    Bytes of names that are not UTF-8 need a handler that escapes surrogates.
    """

    def format(self, record: logging.LogRecord) -> str:
        text = os.fsdecode(octets.bytes_of(super().format(record)))
        if getattr(record, "is_block", False):
            return text
        stamp = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(record.created))
        lines = "".join(f"\t{line}\n" for line in text.splitlines())
        return f"Perforce server error:\n\tDate {stamp}:\n\tPid {os.getpid()}\n{lines}"


class CommandLog:
    """The log of one command."""

    def __init__(
        self,
        log: logging.Logger,
        *,
        number: int,
        user: str,
        client: str,
        address: str,
        program: str,
        command: str,
    ) -> None:
        self._log = log
        self._about: dict[str, Any] = {
            **{"number": number, "user": user, "client": client},
            **{"address": address, "program": program},
        }
        self._number = number
        self.is_over = False
        self._began = time.monotonic()
        self._usage = resource.getrusage(resource.RUSAGE_THREAD)
        stamp = time.strftime("%Y/%m/%d %H:%M:%S")
        self._head = (
            f"\t{stamp} pid {number} {user}@{client} {address} [{program}] '{command}'"
        )
        self._write(self._head)

    def another(self, command: str) -> CommandLog:
        """Return the log of a further command of this client in the same process."""
        return CommandLog(self._log, **{**self._about, "command": command})

    def lapse(self) -> float:
        """Return the seconds since the command began."""
        return time.monotonic() - self._began

    def completed(self) -> None:
        """Write that the command has completed."""
        self.is_over = True
        stamp = time.strftime("%Y/%m/%d %H:%M:%S")
        self._write(
            f"\t{stamp} pid {self._number} completed {_seconds(self.lapse())}"
            f" {self._used()}"
        )

    def tracked(self, lines: str) -> None:
        """Write what the command used."""
        self._write(f"{self._head}\n{lines.rstrip()}")

    def track(self, uses: Mapping[str, Use]) -> str:
        """Return what the command used, as `-Ztrack` shows it."""
        lines = [
            f"--- lapse {_seconds(self.lapse())}",
            f"--- usage {self._used()}",
        ]
        for table, use in sorted(uses.items()):
            lines += _table_lines(table, use)
        return "".join(f"{line}\n" for line in lines)

    def _used(self) -> str:
        before, now = self._usage, resource.getrusage(resource.RUSAGE_THREAD)
        user, system = (
            int(1000 * (getattr(now, name) - getattr(before, name)))
            for name in ("ru_utime", "ru_stime")
        )
        read, written = (
            getattr(now, name) - getattr(before, name)
            for name in ("ru_inblock", "ru_oublock")
        )
        faults = now.ru_majflt - before.ru_majflt
        return (
            f"{user}+{system}us {read}+{written}io 0+0net {now.ru_maxrss}k {faults}pf"
        )

    def _write(self, text: str) -> None:
        self._log.info("%s%s\n", _HEADER, text, extra={"is_block": True})


def _table_lines(table: str, use: Use) -> list[str]:
    """Return the lines of one table, or of one client that was locked."""
    kind, _, name = table.partition("/")
    is_table = kind.startswith("db.")
    if is_table:
        title = f"--- {kind}"
    else:
        title = f"--- {kind}/{quote(name, safe='')}({'W' if use.locks[1] else 'R'})"
    return [
        title,
        *(
            [
                f"---   locks read/write {use.locks[0]}/{use.locks[1]}"
                f" rows get+pos+scan put+del {use.rows[0]}+0+0 {use.rows[1]}+0"
            ]
            if is_table
            else []
        ),
        f"---   total lock wait+held read/write {_pair(use.waited, use.held)}",
        f"---   max lock wait+held read/write"
        f" {_pair(use.longest_wait, use.longest_held)}",
    ]


def _pair(waited: list[float], held: list[float]) -> str:
    read, write = (
        f"{int(1000 * waited[mode])}ms+{int(1000 * held[mode])}ms" for mode in (0, 1)
    )
    return f"{read}/{write}"


def _seconds(value: float) -> str:
    """Return seconds as p4d writes them: `.031s`, `1.38s`."""
    if value < 1:
        return f"{value:.3f}s".lstrip("0")
    return f"{value:.3g}s" if value < 100 else f"{value:.0f}s"
