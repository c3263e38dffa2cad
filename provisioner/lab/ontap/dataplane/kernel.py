"""Requests to a filesystem, during which other threads go on."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)


def ioctl(descriptor: int, request: int, argument: bytearray) -> None:
    """Send a request; what the kernel answers is written into `argument`.

    `fcntl.ioctl` stops all threads until the kernel has answered, if the argument is
    longer than 1,024 bytes: as long as a snapshot takes.

    Raises: OSError.
    Source: fcntl_ioctl_impl in Modules/fcntlmodule.c of Python 3.11.
    """
    buffer = (ctypes.c_char * len(argument)).from_buffer(argument)
    if _libc.ioctl(descriptor, ctypes.c_ulong(request), buffer) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
