"""List and download rescued work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import structlog

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.lib.places import place_for_download
from provisioner.lib.sizes import size_text
from provisioner.rescues.contents import Contents, entries_from
from provisioner.rescues.models import RescueRead
from provisioner.rescues.reading import DownloadBroken, Reader
from provisioner.rescues.refusals import NothingArchived
from provisioner.workspaces.models import Rescue
from provisioner.workspaces.permissions import can_change_workspace

log = structlog.get_logger(__name__)

CONTENTS_WINDOW_BYTES = 1024 * 1024


class Download:
    """The archive of a rescue, to be sent. Close it, however much of it was read."""

    def __init__(
        self, rescue: Rescue, *, size_bytes: int, reader: Reader, held: ExitStack
    ) -> None:
        self.size_bytes = size_bytes
        self.file_name = f"{rescue.workspace.name}-{rescue.created_at:%Y%m%d-%H%M}.tar"
        self._rescue, self._pieces, self._held = rescue, reader.pieces(), held

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except DownloadBroken as broken:
            log.warning(
                "rescue_download_broken", rescue_id=self._rescue.pk, why=str(broken)
            )
            raise

    def close(self) -> None:
        """Release what the hosts have read, and the place. Safe to repeat."""
        self._held.close()


def rescue_download(*, by: User, rescue: Rescue) -> Download:
    """Start reading the archive of a rescue.

    Raises: NotAllowed, NothingArchived, TooManyDownloads, RescueRemoved,
    RescueUnreadable, NoHostAnswers.
    """
    _require_archive(by, rescue)
    with place_for_download(by.pk) as held:
        reader = held.enter_context(closing(Reader(rescue, RescueRead.File.ARCHIVE)))
        size = reader.size()
        record_event(
            rescue.workspace,
            kind="rescue_downloaded",
            message="Downloaded the rescued work, "
            f"{size_text(size)} in {rescue.directory}.",
            actor=by,
            data={"rescue": rescue.pk, "bytes": size},
        )
        return Download(rescue, size_bytes=size, reader=reader, held=held.pop_all())


def rescue_contents(*, by: User, rescue: Rescue, start: int = 0) -> Contents:
    """Return some entries of the archive, from a byte of its manifest on.

    Raises: NotAllowed, NothingArchived, TooManyDownloads, RescueRemoved,
    RescueUnreadable, RescueDamaged, NoHostAnswers.
    """
    _require_archive(by, rescue)
    with place_for_download(by.pk) as held:
        reader = Reader(
            rescue,
            RescueRead.File.LIST,
            start=start,
            window_bytes=CONTENTS_WINDOW_BYTES,
        )
        held.enter_context(closing(reader))
        return entries_from(reader.pieces(), start=start)


def _require_archive(by: User, rescue: Rescue) -> None:
    """Raises: NotAllowed, NothingArchived."""
    permissions.require(can_change_workspace(by, rescue.workspace))
    if not rescue.has_archive:
        raise NothingArchived
