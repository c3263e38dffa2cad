"""Chromium on this machine, for pictures of pages and for browser tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# The first is the same browser without windows, which takes less of the machine.
NAMES = (
    "chromium-headless-shell",
    *("chromium", "chromium-browser", "google-chrome", "chrome"),
)
# Pages draw as root, too, and ask nobody but Cloneyard.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


class NoChromium(Exception):
    """There is no Chromium here: .ci/system-packages installs it."""


def find_chromium() -> str | None:
    """Return the path of the browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run the browser in the block.

    Raises: NoChromium.
    """
    path = find_chromium()
    if path is None:
        raise NoChromium(NoChromium.__doc__)
    # TEMP leads nowhere for the sake of Perforce's library; browsers heed this first.
    os.environ.setdefault("TMPDIR", tempfile.gettempdir())
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, args=ARGUMENTS) as browser,
    ):
        yield browser
