"""Say where the log of a Perforce server is."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.zones import known_zones
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.lib.refusals import InvalidRequest
from provisioner.server_log.models import ServerLog
from provisioner.server_log.queries import log_of
from provisioner.sites.models import PerforceServer


def server_log_save(*, by: User, server: PerforceServer, **settings: Any) -> ServerLog:
    """Change which file is the log of a server, and whether it is followed.

    `settings` are the columns `path`, `time_zone` and `is_followed`; those left out
    stay. Another file is read from its beginning; what was stored stays.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        locked = PerforceServer.objects.select_for_update().get(pk=server.pk)
        log = log_of(locked)
        before = {name: getattr(log, name) for name in settings}
        for name, value in settings.items():
            setattr(log, name, value)
        _check(log)
        after = {name: getattr(log, name) for name in settings}
        changes = changes_between(before, after)
        if "path" in changes:
            log.head, log.offset, log.running, log.trouble = "", 0, [], ""
        if changes or log.pk is None:
            log.save()
            record_event(
                server,
                kind="server_log_changed",
                message="Reading of the server's log changed.",
                actor=by,
                data=changes,
            )
    return log


def _check(log: ServerLog) -> None:
    if not log.path.startswith("/") or "\0" in log.path:
        raise InvalidRequest.at(
            "path", "Name the file with its whole path, as P4LOG on the server's host."
        )
    if log.time_zone not in known_zones():
        raise InvalidRequest.at(
            "time_zone", f"There is no time zone “{log.time_zone}”."
        )
