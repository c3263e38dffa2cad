"""Pictures of the pages, taken in Chromium from a running demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

from provisioner.demo.chromium import running_chromium
from provisioner.demo.seed import PASSWORD


@dataclass(frozen=True, kw_only=True)
class Picture:
    """`name` is the file's, `path` the page's URL, `width` in CSS pixels."""

    name: str
    who: str
    path: str
    width: int = 1280
    height: int = 860
    scheme: Literal["light", "dark"] = "light"


def take(
    pictures: Sequence[Picture],
    *,
    url: str,
    directory: Path,
    say: Callable[[str], None],
) -> None:
    """Write a PNG file of each page, replacing existing ones.

    Raises: NoChromium.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with running_chromium() as browser:
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
