"""A btrfs image for labs on other filesystems, made and mounted as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from provisioner.lab.ontap.dataplane.quotas import enable_quotas

_SECONDS = 60

# Btrfs frees what was deleted after a commit; the usual 30 s are long for a lab.
_OPTIONS = "loop,noatime,commit=5"


def attach_image(root: Path, *, size_bytes: int) -> bool:
    """Mount a btrfs image at ``root/data``, creating it if necessary.

    The image is sparse. Safe to repeat. Returns False if that is impossible: the caller
    is not root, or the machine has no ``mkfs.btrfs``.
    """
    data, image = root / "data", root / "data.btrfs"
    if os.geteuid() != 0 or shutil.which("mkfs.btrfs") is None:
        return False
    data.mkdir(mode=0o711, exist_ok=True)
    if os.path.ismount(data):
        return True
    if not image.exists():
        half = image.with_suffix(".half")
        with half.open("wb") as file:
            file.truncate(size_bytes)
        _run("mkfs.btrfs", "--quiet", "--force", str(half))
        half.rename(image)
    _run("mount", "-o", _OPTIONS, str(image), str(data))
    data.chmod(0o711)
    enable_quotas(data)
    return True


def detach_image(root: Path) -> None:
    """Unmount the image; safe to repeat."""
    while os.path.ismount(root / "data"):
        _run("umount", str(root / "data"))


def _run(*command: str) -> None:
    """Run a system program.

    Raises: OSError with its output.
    """
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if result.returncode != 0:
        raise OSError(f"{command[0]} failed: {result.stderr.strip()}")
