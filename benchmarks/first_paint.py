"""How long a browser shows nothing: first contentful paint of the ten main pages.

Prints a JSON line per page and a summary that names the misses. The demo with its
company runs in a directory that is gone afterwards, web server included; Chromium opens
each page in turn, round after round. `first_ms` is the visit with an empty cache, the
others have the stylesheet and the scripts. `server_ms` is the time to the first byte,
which a busy machine stretches; `browser_ms` what the browser takes from there.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shared.places import place_of_its_own
from shared.verdicts import load

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROUNDS = int(os.environ.get("PAINT_ROUNDS", "12"))
AT_MOST_MS = 200
TIMES = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return paint && [paint.startTime, page.responseStart];
}"""


def main() -> None:
    place_of_its_own("paint")
    os.environ["LOG_LEVEL"] = "WARNING"
    import django

    django.setup()
    from provisioner.demo.chromium import running_chromium
    from provisioner.demo.run import Demo, DemoOptions

    options = DemoOptions(has_company=True)
    with Demo(options, say=lambda line: print(line, file=sys.stderr)) as demo:
        demo.start()
        looked_at = pages()
        with running_chromium() as browser:
            times = measured(browser, looked_at, url=demo.url)
    found = [figures(name, of_page) for name, of_page in times.items()]
    for figure in found:
        print(json.dumps(figure), flush=True)
    print(json.dumps(summary(found)), flush=True)


def pages() -> dict[str, tuple[str, str]]:
    """Return who looks at which address, by the name of the page."""
    from provisioner.catalog.models import Template
    from provisioner.engine.models import Operation
    from provisioner.workspaces.models import Workspace

    mine = Workspace.objects.filter(owner__username="alice", state="ready").first()
    template = Template.objects.get(name="aurora-main")
    build = Operation.objects.filter(subject=template.subject_id).latest("pk")
    assert mine is not None
    return {
        "home": ("alice", "/"),
        "workspace": ("alice", f"/workspaces/{mine.pk}/"),
        "templates": ("alice", "/templates/"),
        "template": ("alice", f"/templates/{template.pk}/"),
        "overview": ("admin", "/overview/"),
        "all workspaces": ("admin", "/workspaces/"),
        "operations": ("admin", "/operations/"),
        "build": ("admin", f"/operations/{build.pk}/"),
        "people": ("admin", "/people/"),
        "audit log": ("admin", "/audit-log/"),
    }


def measured(
    browser: Browser, looked_at: Mapping[str, tuple[str, str]], *, url: str
) -> dict[str, list[tuple[float, float]]]:
    """Return paint and first byte of each visit to each page, in milliseconds."""
    contexts = {who: signed_in(browser, who, url=url) for who in ("alice", "admin")}
    times = {}
    for name, (who, path) in looked_at.items():
        page = empty_cache_of(browser, contexts[who], url=url)
        times[name] = [visit(page, path)]
        page.context.close()
    for _ in range(ROUNDS):
        for name, (who, path) in looked_at.items():
            times[name].append(visit(contexts[who].pages[0], path))
    return times


def signed_in(browser: Browser, who: str, *, url: str) -> BrowserContext:
    from provisioner.demo.seed import PASSWORD

    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Username").fill(who)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    return context


def empty_cache_of(browser: Browser, context: BrowserContext, *, url: str) -> Page:
    state: Any = context.storage_state()
    return browser.new_context(base_url=url, storage_state=state).new_page()


def visit(page: Page, path: str) -> tuple[float, float]:
    """Open an address; return when it painted, and when its first byte came."""
    page.goto(path, wait_until="load")
    page.wait_for_function(TIMES)
    paint, first_byte = page.evaluate(TIMES)
    return paint, first_byte


def figures(name: str, times: list[tuple[float, float]]) -> dict[str, Any]:
    first, *others = times
    paints = [paint for paint, _ in others]
    return {
        "benchmark": "first_paint",
        "page": name,
        "first_ms": round(first[0]),
        "median_ms": round(statistics.median(paints)),
        "worst_ms": round(max(paints)),
        "server_ms": round(statistics.median(byte for _, byte in others)),
        "browser_ms": round(statistics.median(p - byte for p, byte in others)),
    }


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "benchmark": "first_paint",
        "at_most_ms": AT_MOST_MS,
        "worst_median_ms": max(one["median_ms"] for one in found),
        "worst_first_ms": max(one["first_ms"] for one in found),
        "misses": [one["page"] for one in found if one["median_ms"] > AT_MOST_MS],
        "load": load(),
    }


if __name__ == "__main__":
    main()
