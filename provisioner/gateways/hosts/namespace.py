"""Check that a path on a host is the namespace of an SVM.

Workers act as root below a site's mount root, which an administrator of the pages
names. If others could create entries there, a directory with a volume's name would be
taken for a clone, and given away or cleared.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Collection
from ipaddress import ip_address
from pathlib import Path

from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.mounts import Mount, find_mount


def require_namespace(
    mount_root: Path,
    volume: Path,
    *,
    addresses: Callable[[], Collection[str]],
    is_lab: bool,
) -> None:
    """Refuse a volume below a mount root that is not the SVM's namespace.

    `addresses` are those at which the SVM serves NFS, empty if ONTAP does not say. The
    lab's namespace is a directory of this host, which only whoever runs the lab may
    use.

    Raises: Refused.
    """
    mount = find_mount(mount_root)
    if mount is None:
        raise _refused(f"{mount_root} is not on this host.")
    if is_lab and not mount.fs_type.startswith("nfs"):
        return require_closed(mount_root)
    is_nfs = mount.fs_type.startswith("nfs")
    if why := why_no_namespace(mount, addresses=addresses() if is_nfs else ()):
        raise _refused(f"{mount_root} {why}")
    if mount.mount_point != mount_root.resolve():
        raise _refused(f"{mount_root} is a directory of {mount.source}, not its root.")
    if _device_of(volume) == mount_root.stat().st_dev:
        raise _refused(f"{volume} is a directory of {mount.source}, and no volume.")
    return None


def why_no_namespace(mount: Mount, *, addresses: Collection[str]) -> str:
    """Return why a mount is not the root of the SVM's namespace, "" if it is."""
    if not mount.fs_type.startswith("nfs"):
        return f"is a directory of this host's own ({mount.fs_type})."
    server, _, path = mount.source.rpartition(":")
    if path != "/" or mount.root not in ("", "/"):
        return f"is {mount.source}, and not the root of a namespace."
    if addresses and not _is_at(server, addresses):
        return (
            f"comes from {server}, which is not an address of the SVM: those are "
            f"{', '.join(addresses)}."
        )
    return ""


def _device_of(volume: Path) -> int:
    try:
        # The dot has the kernel mount what is behind a junction.
        return os.stat(f"{volume}/.").st_dev
    except PermissionError:  # we are not root
        return volume.stat().st_dev


def require_server(server: str, *, addresses: Collection[str]) -> None:
    """Refuse an NFS server that is not the SVM, as far as its addresses are known.

    Raises: Refused.
    """
    if addresses and not _is_at(server, addresses):
        raise _refused(
            f"{server} is not an address at which the SVM serves NFS: those are "
            f"{', '.join(addresses)}."
        )


def _is_at(server: str, addresses: Collection[str]) -> bool:
    wanted = {str(ip_address(address)) for address in addresses}
    try:
        found = socket.getaddrinfo(server.strip("[]"), 2049)
    except OSError:
        return False
    return any(str(address[0]) in wanted for *_, address in found)


def require_closed(directory: Path) -> None:
    """Refuse a directory in which others could make an entry with a volume's name.

    Raises: Refused.
    """
    if not directory.is_dir():
        raise _refused(f"{directory} is not a directory of this host.")
    status = directory.stat()
    is_open = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    if is_open or status.st_uid not in {0, os.geteuid()}:
        raise _refused(f"{directory} can be written to by others than this worker.")


def _refused(sentence: str) -> Refused:
    return Refused(
        f"{sentence} Nothing was touched there.",
        system="host",
        operation="find namespace",
    )
