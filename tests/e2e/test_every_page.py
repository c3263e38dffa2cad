"""Every page as people meet it: for everybody, in both themes, at every width.

`make test` looks at the pages of who is nobody yet, `make test-integration` at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.template import loader
from playwright.sync_api import Browser, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from tests.e2e.furnished import Furnished
from tests.e2e.pages import addresses_of
from tests.support.chromium import SETTLED_WITHIN_MS, SignIn

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),  # many pages: on a busy machine, minutes
]

expect.set_options(timeout=SETTLED_WITHIN_MS)

# A wide window, what it has left at 200 %, a telephone, and a wide one at 400 %.
WIDE, ZOOMED, NARROW, NARROWEST = 1280, 640, 360, 320
Theme = Literal["light", "dark", "forced"]
ALL_RULES = {
    "runOnly": {
        "type": "tag",
        "values": [
            *("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"),
            "best-practice",
        ],
    }
}
# What depends on the theme, and on the width.
OF_LOOKS = {
    "runOnly": {
        "type": "rule",
        "values": ["color-contrast", "link-in-text-block", "target-size"],
    }
}
# Whose pages are checked as a developer; the others are an administrator's.
OF_DEVELOPERS = (
    *("/me/", "/retired/", "/team/", "/tokens/", "/trash/", "/workspaces/"),
    *("/bisections/", "/me/sessions/", "/webhooks/"),
)
OF_ADMINISTRATORS = ("/tokens/everybody/", "/workspaces/")
ERROR_PAGES = ("400.html", "403_csrf.html", "429.html", "500.html", "503.html")
FIND = """
asked => axe.run({...asked, resultTypes: ["violations"], preload: false})
  .then(found => found.violations.flatMap(rule => rule.nodes.map(node =>
    `${rule.id} (${rule.impact}): ${node.target} ${node.html.slice(0, 120)}`)))
"""
TOO_WIDE = """
() => [...document.body.querySelectorAll("*")]
  .filter(it => it.getBoundingClientRect().right > innerWidth + 1)
  .map(it => `${it.tagName} .${it.getAttribute("class")}`).slice(0, 3)
"""
# In forced colors: words that are hard to tell from what is behind them. The rule of
# axe takes the color of words from -webkit-text-fill-color, which is not forced.
TOO_FAINT = """
() => {
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const luminance = color => parts(color).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = it => {
    const color = getComputedStyle(it).backgroundColor;
    return (parts(color)[3] ?? 1) === 1 || !it.parentElement
      ? color : behind(it.parentElement);
  };
  return [...document.body.querySelectorAll("*")].filter(it => {
    const words = [...it.childNodes].filter(one => one.nodeName === "#text" &&
      one.data.trim());
    if (!words.length || it.matches(":disabled, option") || !it.checkVisibility())
      return false;
    const pair = [getComputedStyle(it).color, behind(it)].map(luminance);
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05) < 4.5;
  }).map(it => it.outerHTML.slice(0, 120));
}
"""


class Look:
    """Looks at what a page shows, and notes what nobody should have to put up with."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.width, self.theme = 0, ""
        self.found: list[str] = []
        # In each page that is opened from now on, whatever its policy lets in.
        page.add_init_script(AXE_SCRIPT)

    def go(self, address: str, *, status: int = 200) -> None:
        """Open a page, which answers so, and look at it."""
        self.resize(WIDE, "light")
        answer = self.page.goto(address)
        assert answer is not None
        if answer.status != status:
            self.note(f"answers {answer.status}, not {status}")
        self.look()

    def look(self) -> None:
        """Look at what is shown now: in both themes, at every width."""
        # A page that a click opened has its words before it has its styles.
        self.page.wait_for_load_state()
        self.resize(WIDE, "light")
        self.ask_axe(ALL_RULES)
        self.force_colors()
        for width in (ZOOMED, NARROWEST, NARROW):
            self.resize(width, "dark")
            self.measure(width)
        self.ask_axe(OF_LOOKS)

    def resize(self, width: int, theme: Literal["light", "dark"]) -> None:
        if width != self.width:
            self.page.set_viewport_size({"width": width, "height": 900})
        if theme != self.theme:
            self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        self.width, self.theme = width, theme

    def ask_axe(self, asked: dict[str, Any]) -> None:
        for violation in self.page.evaluate(FIND, asked):
            self.note(violation)

    def measure(self, width: int) -> None:
        if self.page.evaluate("document.documentElement.scrollWidth") > width:
            self.note(f"scrolls sideways: {self.page.evaluate(TOO_WIDE)}")

    def force_colors(self) -> None:
        self.page.emulate_media(forced_colors="active")
        self.theme = "forced"
        for faint in self.page.evaluate(TOO_FAINT):
            self.note(f"too faint: {faint}")
        self.page.emulate_media(forced_colors="none")

    def note(self, what: str) -> None:
        self.found.append(f"{self.page.url} {self.width} {self.theme}: {what}")


def answer_with(body: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=body, content_type="text/html")


def is_of_developers(address: str) -> bool:
    if address in OF_ADMINISTRATORS:
        return False
    return address == "/" or address.startswith(OF_DEVELOPERS)


@pytest.mark.integration
def test_every_page_of_an_administrator(sign_in: SignIn, furnished: Furnished) -> None:
    look = Look(sign_in(furnished.admin))
    pages = [one for one in addresses_of(furnished) if not is_of_developers(one)]
    assert len(pages) > 45
    for address in (*pages, "/", f"/workspaces/{furnished.mates.pk}/"):
        look.go(address)

    # What comes of a key and of a button is a page, too.
    page = look.page
    look.resize(WIDE, "light")
    page.goto(f"/templates/{furnished.template.pk}/")
    page.get_by_role("button", name="More actions").click()
    expect(page.get_by_role("link", name="Delete…")).to_be_visible()
    look.look()
    page.goto("/workspaces/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog").get_by_role("option")).not_to_have_count(0)
    look.look()
    page.keyboard.press("Escape")
    page.get_by_label("Choose culling", exact=True).check()
    page.get_by_role("button", name="Retire…").click()
    expect(page.get_by_role("heading", name="Retire 1 workspace?")).to_be_visible()
    look.look()
    assert look.found == []


@pytest.mark.integration
def test_every_page_of_a_developer(sign_in: SignIn, furnished: Furnished) -> None:
    look = Look(sign_in(furnished.alice))
    pages = [one for one in addresses_of(furnished) if is_of_developers(one)]
    assert len(pages) > 25
    for address in (*pages, "/templates/", f"/templates/{furnished.template.pk}/"):
        look.go(address)
    look.go("/overview/", status=403)
    look.go("/workspaces/999999/", status=404)

    page = look.page
    page.goto("/tokens/")
    page.get_by_label("What is it for?").fill("nightly build")
    page.get_by_role("button", name="Create a token").click()
    expect(page.get_by_text("shown only once")).to_be_visible()
    look.look()
    # What is shown where something went wrong, as it would be sent.
    for name in ERROR_PAGES:
        page.route(f"**/{name}", answer_with(loader.render_to_string(name)))
        look.go(f"/{name}")
    assert look.found == []


@pytest.mark.integration
def test_pages_of_who_is_nobody_yet(
    sign_in: SignIn,
    furnished: Furnished,
    chromium: Browser,
    live_server: LiveServer,
) -> None:
    newcomer = Look(sign_in(furnished.newcomer))
    newcomer.go("/")
    nobody = Look(chromium.new_page(base_url=live_server.url))
    nobody.go("/login/")
    nobody.page.get_by_label("Username").fill("alice")
    nobody.page.get_by_label("Password").fill("wrong")
    nobody.page.get_by_role("button", name="Sign in").click()
    expect(nobody.page.get_by_role("alert")).to_be_visible()
    nobody.look()
    nobody.go("/password/forgotten/")
    nobody.go("/password/new/MQ/x/")
    assert newcomer.found + nobody.found == []
