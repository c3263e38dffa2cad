"""Delete the demo: unmount what the lab left mounted, then remove the var directory."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

UNMOUNT_WITHIN_SECONDS = 60


class Command(BaseCommand):
    help = "Remove everything below VAR_DIR: database, lab, logs."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        var: Path = settings.VAR_DIR
        if not var.exists():
            return
        running = _running_below(var)
        if running:
            raise CommandError(
                f"Still running with files in {var}: {', '.join(running)}. Stop the "
                "demo first (Ctrl-C), then clean again."
            )
        lab = var / "lab" / "ontap"
        _unmount_below(var, but=lab / "data")
        if lab.exists():
            # It knows its own images and subvolumes best.
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "provisioner.lab.ontap",
                    "--forget",
                    "--root",
                    str(lab),
                ],
                cwd=settings.BASE_DIR,
                check=False,
                timeout=UNMOUNT_WITHIN_SECONDS,
            )
        _unmount_below(var)
        shutil.rmtree(var)


def _unmount_below(directory: Path, *, but: Path | None = None) -> None:
    """Unmount everything below a directory: what is there belongs to its volume.

    Raises: CommandError if something stays mounted, so that nothing is removed through
    it.
    """
    for mount in _mounts_below(directory):
        if mount != str(but):
            subprocess.run(
                ["umount", mount],  # noqa: S607
                check=False,
                timeout=UNMOUNT_WITHIN_SECONDS,
            )
    left = [mount for mount in _mounts_below(directory) if mount != str(but)]
    if left:
        raise CommandError(
            f"Could not unmount {left[0]}; what is in {directory} was not removed."
        )


def _mounts_below(directory: Path) -> list[str]:
    """Return mount points below a directory, deepest first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [
        line.split()[4].encode().decode("unicode_escape").encode("latin-1").decode()
        for line in lines
    ]
    below = [point for point in points if point.startswith(f"{directory}/")]
    return sorted(below, key=len, reverse=True)


def _running_below(directory: Path) -> list[str]:
    """Return the names of processes started with it or a path below it."""
    path = re.compile(rf"(?:^|=){re.escape(str(directory))}(?:/|$)")
    names = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended meanwhile
        if any(path.search(word) for word in words):
            names.append(Path(words[0]).name)
    return sorted(set(names))
