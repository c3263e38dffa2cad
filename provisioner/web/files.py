"""Files in posted forms."""

from __future__ import annotations

from typing import Any, NoReturn

from django.core.files.uploadhandler import FileUploadHandler, StopUpload


class NoFiles(FileUploadHandler):
    """Takes none, and reads nothing of the request that comes after one."""

    def new_file(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise StopUpload(connection_reset=True)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Never called: `new_file` ended it."""

    def file_complete(self, file_size: int) -> None:
        """Never called: `new_file` ended it."""
