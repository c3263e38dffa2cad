"""Run a program that the kernel refuses namespaces, as a container's profile does.

`python -m tests.support.no_namespaces PROGRAM ARGUMENT…`

Source: seccomp(2), linux/filter.h, unshare in the kernel's tables of system calls.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_UNSHARE = {"x86_64": 272, "aarch64": 97}
_LOAD_NUMBER, _SKIP_UNLESS, _RETURN = 0x20, 0x15, 0x06
_EPERM, _ALLOWED = 0x00050001, 0x7FFF0000


def refuse_namespaces() -> None:
    """Answer unshare(2) with EPERM, in this process and all that it starts."""
    number = _UNSHARE[os.uname().machine]
    code = (
        (_LOAD_NUMBER, 0, 0, 0),
        (_SKIP_UNLESS, 0, 1, number),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOWED),
    )
    filters = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *line) for line in code)
    )
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((_PR_SET_NO_NEW_PRIVS, 1), (_PR_SET_SECCOMP, _MODE_FILTER, program)):
        if libc.prctl(*words, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse_namespaces()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - as asked
