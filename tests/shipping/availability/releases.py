"""Which release is the one before a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path


def newest_release(checkout: Path) -> str:
    """Return the newest tag `v*` that HEAD comes after, "" if there is none.

    A release candidate comes before its release.
    """
    tags = git(
        *("-c", "versionsort.suffix=-", "tag", "--list", "v*"),
        *("--sort=-version:refname", "--merged", "HEAD", "--no-contains", "HEAD"),
        at=checkout,
    )
    return next(iter(tags.split()), "")


def git(*arguments: str, at: Path) -> str:
    """Run git; hooks and settings of who runs the tests stay out."""
    return subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=at,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
