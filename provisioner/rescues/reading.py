"""Bytes of a rescue, from the host that sees them to the process that sends them.

The reader requests a window of a file; a job on a host of the site puts it into the
database piece by piece, and ends. The reader takes each piece, and requests the next
window before it runs out. So no worker waits for a browser, at most two windows exist
at a time, and a job that was killed is simply run again by another host.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from django.db import connection, transaction
from django.db.models.functions import Now
from procrastinate.contrib.django import app

from provisioner.engine.deferring import defer
from provisioner.engine.dispatch import PEOPLE_FIRST
from provisioner.engine.workers import alive_workers
from provisioner.rescues.models import RescueRead
from provisioner.rescues.refusals import NoHostAnswers, RescueRemoved, RescueUnreadable
from provisioner.workspaces.models import Rescue

READ: Final = "read_rescue"
TAKE = """
    DELETE FROM rescues_rescuepiece WHERE read_id = %s AND "offset" = %s RETURNING data
"""
WINDOW_BYTES = 16 * 1024 * 1024
# Longer than it takes until the job of a killed worker is given to another.
ANSWER_WITHIN_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.2


class DownloadBroken(Exception):
    """A download was interrupted, which the client must notice."""


class Reader:
    """Reads a file of a rescue from an offset on.

    Closing it removes what hosts have read. Call it outside transactions: hosts see
    only committed rows.

    Raises: NoHostAnswers.
    """

    def __init__(
        self,
        rescue: Rescue,
        file: RescueRead.File,
        *,
        start: int = 0,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        self._rescue, self._window_bytes = rescue, window_bytes
        self._at = self._asked_to = start
        queue = rescue.workspace.site.host_queue
        if not any(worker.serves(queue) for worker in alive_workers()):
            raise NoHostAnswers(site=rescue.workspace.site.name)
        with transaction.atomic():
            self._read = RescueRead.objects.create(rescue=rescue, file=file)
            self._ask_on()

    def size(self) -> int:
        """Return the size of the file once a host has opened it.

        Raises: RescueRemoved, RescueUnreadable, NoHostAnswers.
        """
        for _ in _looks():
            self._read.refresh_from_db(
                fields=["size_bytes", "problem", "problem_message"]
            )
            if self._read.problem == "rescue_removed":
                raise RescueRemoved(directory=self._rescue.directory)
            if self._read.problem:
                raise RescueUnreadable(reason=self._read.problem_message)
            if self._read.size_bytes is not None:
                return self._read.size_bytes
        raise NoHostAnswers(site=self._rescue.workspace.site.name)

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of the file, piece by piece.

        Raises: as `size`; DownloadBroken.
        """
        size = self.size()
        while self._at < size:
            if self._asked_to - self._at <= self._window_bytes // 2:
                with transaction.atomic():
                    self._ask_on()
            data = self._take()
            self._at += len(data)
            yield data

    def close(self) -> None:
        """Delete all of it, including what hosts are still writing."""
        RescueRead.objects.filter(pk=self._read.pk).forget()

    def _ask_on(self) -> None:
        """Request the next window, unless the file ends before it.

        An owner's files are read one at a time: whoever stops the helper that reads
        them, under its own uid, holds one slot of the hosts.
        """
        size = self._read.size_bytes
        if size is not None and self._asked_to >= size:
            return
        job = app.configure_task(
            READ,
            queue=self._rescue.workspace.site.host_queue,
            lock=f"{READ}.of.{self._rescue.workspace.owner_id}",
            priority=PEOPLE_FIRST,
        )
        defer(
            job,
            read_id=str(self._read.pk),
            start=self._asked_to,
            length=self._window_bytes,
        )
        self._asked_to += self._window_bytes
        RescueRead.objects.filter(pk=self._read.pk).update(asked_at=Now())

    def _take(self) -> bytes:
        """Return the next piece, once it is there.

        Raises: DownloadBroken.
        """
        for _ in _looks():
            with connection.cursor() as cursor:
                cursor.execute(TAKE, [self._read.pk, self._at])
                taken = cursor.fetchone()
            if taken is not None:
                return bytes(taken[0])
            if RescueRead.objects.filter(pk=self._read.pk, problem="").exists():
                continue
            break
        raise DownloadBroken(
            f"{self._read} ends at byte {self._at:,} of {self._read.size_bytes:,}."
        )


def _looks() -> Iterator[None]:
    """Yield between growing pauses, as long as an answer may take."""
    ends_at, pause = time.monotonic() + ANSWER_WITHIN_SECONDS, FIRST_PAUSE_SECONDS
    while True:
        yield
        if time.monotonic() > ends_at:
            return
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
