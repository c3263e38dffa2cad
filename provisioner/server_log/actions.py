"""Set how the log of a Perforce server is followed, and receive uploaded logs."""

from __future__ import annotations

from typing import Any

from django.db import OperationalError, connection, transaction
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.names import one_line
from provisioner.accounts.zones import known_zones
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.engine.deferring import defer_once
from provisioner.engine.queues import PERFORCE
from provisioner.lib.refusals import ActionRefused, InvalidRequest
from provisioner.lib.sizes import size_text
from provisioner.server_log.following import leave_file, locked_logs
from provisioner.server_log.models import LogUpload, ServerLog, upload_path
from provisioner.server_log.queries import log_of
from provisioner.server_log.receiving import Reception
from provisioner.server_log.uploads import require_log
from provisioner.sites.models import PerforceServer

# Registered where it is done; a name keeps the action below it.
READ_UPLOAD = "read_log_upload"
LONGEST_NAME = 255
# A page waits no longer for whoever stores a piece of the log.
LOCKED_WITHIN_MS = 5000


def server_log_save(*, by: User, server: PerforceServer, **settings: Any) -> ServerLog:
    """Change which file is the log of a server, whether and how it is followed.

    `settings` are the columns `way`, `path`, `time_zone`, `build_users` and
    `is_followed`; those left out stay. Another file is read from its beginning; what
    was stored stays.

    Raises: NotAllowed, InvalidRequest, ActionRefused (somebody stores what is in it).
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        log = _locked_log_of(server)
        before = {name: getattr(log, name) for name in settings}
        for name, value in settings.items():
            setattr(log, name, value)
        _check(log)
        after = {name: getattr(log, name) for name in settings}
        changes = changes_between(before, after)
        if "path" in changes:
            leave_file(log)
            log.trouble = ""
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


def server_log_upload(
    *, by: User, server: PerforceServer, name: str, reception: Reception
) -> LogUpload:
    """Have a worker read a log that was received.

    Raises: NotAllowed, NotAServerLog, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    name = one_line(name, word="Name", most=LONGEST_NAME)
    require_log(upload_path(reception.key), name=name)
    with transaction.atomic():
        upload = LogUpload.objects.create(
            server=server,
            key=reception.key,
            name=name,
            size=reception.size,
            uploaded_by=by,
        )
        record_event(
            server,
            kind="server_log_uploaded",
            message=f"Log {name} uploaded, {size_text(reception.size)}.",
            actor=by,
        )
        queue_upload(upload.pk)
    reception.is_kept = True
    return upload


def queue_upload(upload_id: int) -> None:
    """Queue the job that reads an upload."""
    job = app.configure_task(
        READ_UPLOAD, queue=PERFORCE, queueing_lock=f"{READ_UPLOAD}.{upload_id}"
    )
    defer_once(job, upload_id=upload_id)


def _locked_log_of(server: PerforceServer) -> ServerLog:
    """Return the log of a server, locked; a worker may store in it for minutes.

    Raises: ActionRefused (one does).
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCKED_WITHIN_MS}")
    # Who reads the log refers to the server meanwhile, which this lock allows.
    servers = PerforceServer.objects.select_for_update(no_key=True)
    try:
        server = servers.get(pk=server.pk)
        return locked_logs().filter(server=server).first() or log_of(server)
    except OperationalError as error:
        raise ActionRefused(
            "The log is being read now. Save this again in some minutes."
        ) from error


def _check(log: ServerLog) -> None:
    if log.way not in ServerLog.Way.values:
        raise InvalidRequest.at("way", "A log is followed by “host” or “logtail”.")
    needs_path = log.way == ServerLog.Way.HOST or log.path != ""
    if needs_path and (not log.path.startswith("/") or "\0" in log.path):
        raise InvalidRequest.at(
            "path", "Name the file with its whole path, as P4LOG on the server's host."
        )
    if log.time_zone not in known_zones():
        raise InvalidRequest.at(
            "time_zone", f"There is no time zone “{log.time_zone}”."
        )
