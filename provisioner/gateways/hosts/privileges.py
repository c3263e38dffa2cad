"""Files that run with the rights of others: set-uid, set-gid, capabilities.

A set-gid directory is not one of them: it only sets the group of new files in it.

Source: inode(7), capabilities(7) "File capabilities".
"""

from __future__ import annotations

import errno
import os
import stat

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.fence import require_leave

CAPABILITIES = "security.capability"
_BITS = {stat.S_ISUID: "set-uid", stat.S_ISGID: "set-gid"}
_NO_ATTRIBUTES = (errno.ENODATA, errno.ENOTSUP)
_SOMETHING_ELSE = (errno.ELOOP, errno.ENXIO)
# Never opens a device or a pipe, which could block, nor follows a link.
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def drop_privileges(name: str, *, above: int, path: str) -> list[str]:
    """Remove the privileges that a file gives to whoever runs it; return what it had.

    `above` is its directory, `path` its name in messages. A link that replaces it is
    not followed. Safe to repeat.

    Raises: PermanentGatewayError (the file system refuses).
    """
    try:
        mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode) or not (_bits(mode) or _may(name, above)):
            return []
        return _dropped(name, above=above)
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno in _SOMETHING_ELSE:
            return []
        raise PermanentGatewayError(
            f"{path} has set-uid, set-gid or capabilities that could not be removed: "
            f"{error.strerror}. Remove the file, then build again.",
            system="host",
            operation="drop privileges",
            remote_code=str(error.errno),
        ) from error


def _bits(mode: int) -> list[str]:
    return [word for bit, word in _BITS.items() if mode & bit]


def _may(name: str, above: int) -> bool:
    """Return whether it has capabilities, even if nobody may execute it yet.

    Its owner could allow that with chmod, which keeps them.
    """
    return _has_capabilities(f"/proc/self/fd/{above}/{name}", follow_symlinks=False)


def _has_capabilities(file: str | int, *, follow_symlinks: bool = True) -> bool:
    try:
        return bool(os.getxattr(file, CAPABILITIES, follow_symlinks=follow_symlinks))
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return False
        raise


def _dropped(name: str, *, above: int) -> list[str]:
    fd = os.open(name, _LOOK, dir_fd=above)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            return []
        require_leave()
        removed = _bits(mode)
        if removed:
            os.fchmod(fd, stat.S_IMODE(mode) & 0o1777)
        if _has_capabilities(fd):
            # A change of owner, even to nobody else, removes them, as removexattr does
            # only with CAP_SETFCAP. Source: chown(2), capabilities(7).
            os.fchown(fd, -1, -1)
            removed.append("given capabilities")
        return removed
    finally:
        os.close(fd)
