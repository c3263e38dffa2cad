"""A command under way, for whoever records a trace of this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from provisioner.gateways.perforce.errors import ServerMessage
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.tracing import recording
from provisioner.gateways.tracing.exchanges import (
    RECORDS_KEPT,
    Message,
    PerforceExchange,
)


class CommandUnderWay:
    """Tells of a command once it has ended; where nobody listens it does nothing."""

    def __init__(
        self, *, user: str, client: str, host: str, command: tuple[str, ...], form: str
    ) -> None:
        self._began = time.monotonic()
        self._passed_on: list[Record] = []
        self._passed = 0
        self._asked = PerforceExchange(
            user=user, client=client, host=host, command=command, form=form
        )

    def noting(self, each: Callable[[Record], None]) -> Callable[[Record], None]:
        """Return `each`, which also keeps the first records while a trace is made."""
        if not recording.is_on():
            return each

        def take(record: Record) -> None:
            self._passed += 1
            if self._passed <= RECORDS_KEPT:
                self._passed_on.append(record)
            each(record)

        return take

    def answered(
        self,
        records: Sequence[Record],
        *,
        texts: Sequence[str],
        messages: Sequence[ServerMessage],
    ) -> None:
        """Tell what the server answered."""
        if not recording.is_on():
            return
        recording.tell(
            replace(
                self._asked,
                count=self._passed or len(records) + len(texts),
                records=(self._passed_on or records)[:RECORDS_KEPT],
                texts=texts[:RECORDS_KEPT],
                messages=[
                    Message(id=each.id, severity=each.severity, generic=each.generic)
                    for each in messages[:RECORDS_KEPT]
                ],
                milliseconds=recording.milliseconds_since(self._began),
            )
        )

    def lost(self) -> None:
        """Tell that the connection ended, or that the answer took too long."""
        if recording.is_on():
            recording.tell(
                replace(
                    self._asked,
                    is_lost=True,
                    milliseconds=recording.milliseconds_since(self._began),
                )
            )
