"""Reports of a sync: a record or a line per file, and its progress."""

from __future__ import annotations

import time
from collections.abc import Iterator

from provisioner.lab.perforce import hotmessages
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.bulkplan import Noted
from provisioner.lab.perforce.commands.syncplan import Step
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Value


class Reports:
    """Reports steps to the client, the first with totals of all."""

    def __init__(
        self, request: Request, client: Client, *, size: int, count: int, change: int
    ) -> None:
        self._request = request
        self._client = client
        self.size = size
        self._totals: dict[str, Value] = {
            "totalFileSize": size,
            "totalFileCount": count,
            "change": change,
        }
        self.is_quiet = request.has("q")
        # Much is sent without the help that the log needs.
        self._is_fast = not request.connection.is_logged
        self._is_first = True
        if self.is_quiet and request.is_tagged:
            request.record(self._totals)

    @property
    def is_underway(self) -> bool:
        """Return whether a step is reported by its record only, or not at all."""
        is_record = self._request.is_tagged and self._is_fast and not self._is_first
        return self.is_quiet or is_record

    def tell(self, step: Noted) -> None:
        """Report one step, unless the sync is quiet."""
        if self.is_quiet:
            return
        if self._is_fast and not self._is_first:
            self._send([step])
            return
        self._tell_slowly(step)

    def _tell_slowly(self, step: Noted) -> None:
        action, path, place, number, size = step
        local = self._client.local_path(place)
        record: dict[str, Value] = {
            "depotFile": path,
            "clientFile": local,
            "rev": number,
            "action": action,
            **({} if size is None else {"fileSize": size}),
            **(self._totals if self._is_first else {}),
        }
        self._is_first = False
        self._request.report(
            record,
            hotmessages.LINES[action],
            depotFile=path,
            depotRev=f"#{number}",
            haveRev=f"#{number}",
            localPath=local,
        )

    def tell_all(self, steps: Iterator[Noted]) -> None:
        """Report many steps in a row."""
        if self.is_quiet:
            return
        if self._is_first and (first := next(steps, None)) is not None:
            self.tell(first)
        if not self._is_fast:
            for step in steps:
                self.tell(step)
            return
        for batch in hotmessages.batches(steps):
            self._send(batch)

    def _send(self, steps: list[Noted]) -> None:
        is_tagged = self._request.is_tagged
        self._request.connection.send_raw(
            hotmessages.synced(steps, client=self._client, is_tagged=is_tagged)
        )


def noted(step: Step) -> Noted:
    """Return what is reported of a step."""
    size = None if step.revision is None else step.revision.size
    return step.action, step.path, step.client_path, step.number, size


def reports_of(request: Request, client: Client, steps: list[Step]) -> Reports:
    """Return the reports of steps."""
    revisions = [step.revision for step in steps if step.revision is not None]
    return Reports(
        request,
        client,
        size=sum(revision.size for revision in revisions),
        count=len(steps),
        change=max((revision.change for revision in revisions), default=0),
    )


class Progress:
    """Shows the progress of a quiet sync to a client that requested it."""

    def __init__(self, request: Request, *, total: int) -> None:
        self._request = request
        self._total = total
        self._is_wanted = "progress" in request.message and request.has("q")
        self._told_at = time.monotonic()
        if self._is_wanted:
            self._tell(type=3, desc="Syncing files", units=2, total=total)

    def count(self, done: int) -> None:
        """Report how many files are done, a few times a second and at the end."""
        now = time.monotonic()
        if self._is_wanted and (done == self._total or now - self._told_at > 0.3):
            self._told_at = now
            self._tell(update=done)

    def finish(self) -> None:
        if self._is_wanted:
            self._tell(done=0)

    def _tell(self, **variables: Value) -> None:
        self._request.send("client-Progress", {"handle": "progress", **variables})
