"""Receive a log that somebody sends: whole on disk, or gone."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, SkipFile

from provisioner.gateways.hosts.log_files import LogUnwritable, begin_log
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.sizes import size_text
from provisioner.server_log.models import upload_path
from provisioner.server_log.refusals import LogNotKept, LogTooLarge


@dataclass
class Reception:
    """What was received of a log so far; `is_kept` once its row is there."""

    key: uuid.UUID
    file: BinaryIO
    size: int = 0
    is_kept: bool = False

    def write(self, data: bytes) -> None:
        """Keep more of it.

        Raises: LogTooLarge, LogNotKept.
        """
        self.size += len(data)
        if self.size > largest():
            raise LogTooLarge(most=size_text(largest()))
        with _kept():
            self.file.write(data)

    def finish(self) -> None:
        """Have it on disk, whole.

        Raises: LogNotKept.
        """
        with _kept():
            self.file.close()

    def discard(self) -> None:
        """Forget it, unless it is kept."""
        if not self.is_kept:
            with suppress(OSError):  # of what would have to be written still
                self.file.close()
            upload_path(self.key).unlink(missing_ok=True)


@contextmanager
def _kept() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"{settings.LOG_DIR}: {os.strerror(error.errno or 0)}."
        raise LogNotKept(reason=reason) from error


def largest() -> int:
    """Return how many bytes a log may have that is sent to us."""
    return int(settings.SERVER_LOG_UPLOAD_MB) << 20


def begin() -> Reception:
    """Make room for a log.

    Raises: LogNotKept.
    """
    key = uuid.uuid4()
    try:
        return Reception(key=key, file=begin_log(upload_path(key)))
    except LogUnwritable as error:
        raise LogNotKept(reason=error.sentence) from error


@contextmanager
def received(pieces: Iterator[bytes]) -> Iterator[Reception]:
    """Receive a log; it is gone afterwards unless it is kept.

    Raises: LogTooLarge, LogNotKept.
    """
    reception = begin()
    try:
        for piece in pieces:
            reception.write(piece)
        reception.finish()
        yield reception
    finally:
        reception.discard()


class ReceivedLog(UploadedFile):
    """A log in a posted form."""

    def __init__(self, reception: Reception, *, name: str) -> None:
        super().__init__(name=name, size=reception.size)
        self.reception = reception


class LogReceiver(FileUploadHandler):
    """Writes the one file of a posted form to where logs are received.

    `refusal` says why it was not. What comes after that is read and let go, as browsers
    listen to no answer before they have sent all.
    """

    refusal: ActionRefused | None = None
    reception: Reception | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if self.reception is not None or self.refusal is not None:
            raise SkipFile
        with self._told():
            self.reception = begin()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes | None:
        if self.reception is not None and self.refusal is None:
            with self._told():
                self.reception.write(raw_data)
        return None

    def file_complete(self, file_size: int) -> UploadedFile | None:
        if self.reception is None or self.refusal is not None or not self.file_name:
            return None
        with self._told():
            self.reception.finish()
        return ReceivedLog(self.reception, name=self.file_name)

    def discard(self) -> None:
        """Forget what was received, unless it is kept."""
        if self.reception is not None:
            self.reception.discard()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except ActionRefused as refusal:
            self.refusal = refusal
