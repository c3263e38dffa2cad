"""Read the logs that were uploaded."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import transaction

from provisioner.audit_log.actions import record_event
from provisioner.lib.refusals import ActionRefused, InvalidRequest
from provisioner.server_log.following import (
    UNREADABLE,
    oddities_in,
    opened_log,
    read_once,
    read_text,
    unreadable,
)
from provisioner.server_log.models import LogUpload
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.receiving import largest

_LOOKED_AT_BYTES = 1 << 20
# A worker that is killed in mid-read has had one, too.
MOST_ATTEMPTS = 5
_IN_VAIN = (
    f"{MOST_ATTEMPTS} attempts to read it failed. The workers' logs say why. Nothing "
    "of it was stored: send it again once that is fixed."
)
# One that is received for so long is received no more.
_BROKEN_AFTER_SECONDS = 86_400.0


def require_log(path: Path, *, name: str) -> None:
    """Refuse a file that does not begin as the log of a Perforce server.

    Raises: NotAServerLog, InvalidRequest (it cannot be read).
    """
    parser = LogParser()
    try:
        with opened_log(path) as opened:
            parser.feed(opened.read(_LOOKED_AT_BYTES))
    except UNREADABLE as error:
        raise InvalidRequest(unreadable(name, error)) from error
    parser.close_block()


def read_upload(upload_id: int) -> None:
    """Read a log that waits for it, whole or not at all, and let its file go.

    Safe to repeat, also at the same time: what came of it is saved with what was read.
    An attempt counts before it begins, so none is the last without being counted.
    """
    with transaction.atomic():
        upload = _waiting(upload_id)
        if upload is None:
            return
        upload.attempts += 1
        upload.save(update_fields=("attempts",))
    with transaction.atomic():
        upload = _waiting(upload_id)
        if upload is None:
            return
        try:
            if upload.attempts > MOST_ATTEMPTS:
                raise InvalidRequest(_IN_VAIN)
            upload.message = _read(upload)
            upload.state = LogUpload.State.READ
        except ActionRefused as refusal:
            upload.message = refusal.sentence
            upload.state = LogUpload.State.REFUSED
        upload.save(update_fields=("state", "message"))
    upload.path.unlink(missing_ok=True)


def _waiting(upload_id: int) -> LogUpload | None:
    """Lock a log that waits to be read; None if it does not, or somebody reads it."""
    free = LogUpload.objects.select_for_update(skip_locked=True, of=("self",))
    waiting = free.filter(pk=upload_id, state=LogUpload.State.WAITING)
    return waiting.select_related("server", "uploaded_by").first()


def _read(upload: LogUpload) -> str:
    """Read the log; return what was read.

    Raises: ActionRefused.
    """
    if not upload.path.exists():
        raise InvalidRequest(
            f"{upload.path} is not on {socket.gethostname()}. Web servers and workers "
            "have to share LOG_DIR. Then send the log again."
        )
    counted = read_once(upload.server, upload.path, name=upload.name, at_most=largest())
    said = read_text(counted)
    record_event(
        upload.server,
        kind="server_log_read",
        message=f"{said} from {upload.name}.",
        actor=upload.uploaded_by,
    )
    odd = (oddity for _, oddity in oddities_in(counted))
    return " ".join(f"{each}." for each in (said, *odd))


def forget_broken_uploads() -> None:
    """Remove what was received in part, when its web server ended."""
    known = LogUpload.objects.filter(state=LogUpload.State.WAITING)
    kept = {upload.path for upload in known}
    for path in Path(settings.LOG_DIR).glob("server-log-*.upload"):
        with suppress(FileNotFoundError):  # discarded meanwhile
            age = time.time() - path.stat().st_mtime
            if path not in kept and age > _BROKEN_AFTER_SECONDS:
                path.unlink()
