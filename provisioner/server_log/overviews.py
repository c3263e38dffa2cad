"""What pages show of logs."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.engine.queues import SERVER_HOST_PREFIX
from provisioner.engine.workers import alive_workers, unserved
from provisioner.server_log.models import ServerLog
from provisioner.sites.models import PerforceServer


@dataclass(frozen=True, kw_only=True)
class LogOverview:
    """The log of a server; `lacks_worker` names the queue that nobody serves, or ""."""

    log: ServerLog
    lacks_worker: str

    @property
    def oddities(self) -> list[tuple[str, int]]:
        """What was odd about the log, and how often."""
        counts = (
            ("lines of no known kind", self.log.other_lines),
            ("texts that are not UTF-8", self.log.not_utf8),
            ("ends of commands whose begin is not known", self.log.ends_without_start),
            ("times that the clock was set back", self.log.clock_jumps),
            ("commands of days to come, not stored", self.log.misdated),
            ("files gone before they were read", self.log.gaps),
        )
        return [(said, count) for said, count in counts if count]


def log_overviews() -> list[LogOverview]:
    """Return the log of each server, by name."""
    workers = alive_workers()
    logs = {log.server_id: log for log in ServerLog.objects.select_related("server")}
    return [
        LogOverview(
            log=log,
            lacks_worker=queue if unserved([queue], workers) else "",
        )
        for server in PerforceServer.objects.order_by("name")
        for log in [logs.get(server.pk) or ServerLog(server=server, is_followed=False)]
        for queue in [f"{SERVER_HOST_PREFIX}{server.name}"]
    ]
