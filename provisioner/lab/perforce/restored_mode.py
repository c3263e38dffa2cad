"""The kind of server that wrote a checkpoint: its case handling and Unicode mode.

Nothing documented says the former. The order of its rows does: `aa` comes before `AX`
if case is ignored, otherwise after it. Unicode mode is a counter.

Source: the order of names in the published client source (StrPtr); "p4d -xi" of the
internationalization notes.
"""

from __future__ import annotations

from provisioner.lab.perforce import octets
from provisioner.lab.perforce.journal import Record
from provisioner.lab.perforce.state import PerforceConfig

# Their rows begin with a name, and lie in the order of names.
_ORDERED = frozenset({"db.domain", "db.user", "db.rev", "db.have", "db.label"})


class RestoredMode:
    """What the rows seen so far say about their server."""

    def __init__(self) -> None:
        self._before = ("", b"")
        self._in_order_of_bytes = 0
        self._in_order_without_case = 0
        self._is_unicode = False
        self._is_utf8 = True

    def see(self, record: Record) -> None:
        """Process one row, in the order of the checkpoint."""
        if record.table == "db.counters" and record.text(0) == "unicode":
            self._is_unicode = record.text(1) not in ("", "0")
        if record.table not in _ORDERED:
            return
        self._is_utf8 = self._is_utf8 and octets.is_utf8(record.text(0))
        name = octets.bytes_of(record.text(0))
        table, before = self._before
        self._before = (record.table, name)
        if table == record.table:
            self._in_order_of_bytes += before < name and before.lower() > name.lower()
            self._in_order_without_case += (
                before > name and before.lower() < name.lower()
            )

    def warnings(self, config: PerforceConfig) -> list[str]:
        """Return how this kind of server would treat the rows, as sentences."""
        found = []
        # A journal is in no order: both kinds of pairs are in it, and prove nothing.
        ordered_without_case = bool(self._in_order_without_case)
        ordered_by_bytes = bool(self._in_order_of_bytes)
        if ordered_without_case != ordered_by_bytes:
            if ordered_without_case and not config.ignores_case:
                found.append(
                    "The checkpoint comes from a server that ignores case, and this "
                    "one does not: paths, clients and users that are written in "
                    "another case are not found. Restore it with -C1 (manage.py lab: "
                    "--ignore-case)."
                )
            if ordered_by_bytes and config.ignores_case:
                found.append(
                    "The checkpoint comes from a server on which case matters, and "
                    "this one ignores it: of files whose names differ only in case, "
                    "one hides the others. Restore it without -C1 (manage.py lab: "
                    "without --ignore-case)."
                )
        if self._is_unicode and not config.is_unicode:
            found.append(
                "The checkpoint comes from a server in Unicode mode, and this one is "
                "not: clients that set P4CHARSET are refused. Restore it with "
                "--unicode."
            )
        if config.is_unicode and not self._is_unicode:
            found.append(
                "The checkpoint comes from a server that is not in Unicode mode, and "
                "this one is: clients without P4CHARSET are refused."
                + ("" if self._is_utf8 else " Some of its names are not UTF-8.")
            )
        return found
