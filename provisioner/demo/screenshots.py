"""Pictures of the pages, taken in Chromium from a demo that runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from provisioner.demo.seed import PASSWORD

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Pages draw as root, too, and ask nobody but Cloneyard.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """`name` is the file's, `path` the page's address, `width` in CSS pixels."""

    name: str
    who: str
    path: str
    width: int = 1120
    height: int = 760
    scheme: Literal["light", "dark"] = "light"


class NoChromium(Exception):
    """There is none on this machine."""


def take(
    pictures: Sequence[Picture],
    *,
    url: str,
    directory: Path,
    say: Callable[[str], None],
) -> None:
    """Write a PNG file of each page; those that are there are replaced.

    Raises: NoChromium.
    """
    found = [path for name in CHROMIUM_NAMES if (path := shutil.which(name))]
    if not found:
        raise NoChromium("There is no Chromium here: .ci/system-packages installs it.")
    directory.mkdir(parents=True, exist_ok=True)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=found[0], args=ARGUMENTS) as browser,
    ):
        for picture in pictures:
            page = _signed_in(browser, picture, url=url)
            page.goto(picture.path)
            page.wait_for_load_state("networkidle")
            written = directory / f"{picture.name}.png"
            page.screenshot(path=written)
            page.context.close()
            say(f"{written}: {picture.path} as {picture.who}")


def _signed_in(browser: Browser, picture: Picture, *, url: str) -> Page:
    context = browser.new_context(
        base_url=url,
        color_scheme=picture.scheme,
        viewport={"width": picture.width, "height": picture.height},
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Username").fill(picture.who)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    return page
