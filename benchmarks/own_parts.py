"""What our own replacements of parts of Django save on the pages that need them most.

Print a JSON line for each part and page: the processor time of a request, PostgreSQL
included, with ours and with Django's in turns, and the share that ours saves. A part
that saves less than 5 % of every page should be deleted. OWN_PARTS_WORKSPACES,
OWN_PARTS_MANY_WORKSPACES (for the paginators) and OWN_PARTS_ROUNDS change the numbers.
`--only WORD` measures the parts with a word in their name.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest import mock

import pages

WORKSPACES = int(os.environ.get("OWN_PARTS_WORKSPACES", "1000"))
MANY_WORKSPACES = int(os.environ.get("OWN_PARTS_MANY_WORKSPACES", "32767"))
ROUNDS = int(os.environ.get("OWN_PARTS_ROUNDS", "12"))
BLOCKS = 8
AT_LEAST_SAVED = 0.05

Swap = Callable[[], AbstractContextManager[Any]]


def main() -> None:
    """Measure in a directory of our own, and remove it however that ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    pages.set_up("own-parts")
    from shared.filled import company_of

    company = company_of(WORKSPACES)
    pages.vacuum()
    from django.test import Client

    from provisioner.lib.garbage import spare_what_is_loaded

    spare_what_is_loaded()  # including the rows that were made

    browser = Client()
    browser.force_login(company.people.admin)
    for name, page, swap in parts(company):
        if only in name:
            figure = compared(browser, name, page, swap)
            figure["workspaces"] = len(company.workspaces)
            print(json.dumps(figure), flush=True)


def compared(browser: Any, name: str, page: str, swap: Swap) -> dict[str, Any]:
    """Ask for a page with ours and with Django's, block by block."""
    ours: list[float] = []
    djangos: list[float] = []
    for _ in range(BLOCKS):
        ours += measured(browser, page)
        with swap():
            djangos += measured(browser, page)
    with_ours, with_djangos = statistics.median(ours), statistics.median(djangos)
    saved = 1 - with_ours / with_djangos
    return {
        "figure": "own part",
        "part": name,
        "page": page,
        "ours_ms": round(with_ours, 2),
        "djangos_ms": round(with_djangos, 2),
        "saved": round(saved, 3),
        "is_worth_it": saved >= AT_LEAST_SAVED,
        "load": round(os.getloadavg()[0], 1),
    }


def measured(browser: Any, page: str) -> list[float]:
    """Return the processor time of each request for a page, in milliseconds."""
    forget_templates()
    for _ in range(2):
        assert browser.get(page).status_code == 200, page
    times = []
    began, began_here = pages.processor_ms(), time.process_time()
    for _ in range(ROUNDS):
        before = time.process_time()
        browser.get(page)
        times.append((time.process_time() - before) * 1000)
    here = (time.process_time() - began_here) * 1000
    of_database = (pages.processor_ms() - began - here) / ROUNDS
    return [each + of_database for each in times]


def forget_templates() -> None:
    """Have templates parsed again, with the tags that are registered now."""
    from django.template import engines

    backend: Any = engines["django"]
    for loader in backend.engine.template_loaders:
        loader.reset()


def parts(company: Any) -> Iterator[tuple[str, str, Swap]]:
    """Yield each part with a page that uses it, and a swap that puts in Django's."""
    from django.core.paginator import Paginator
    from django.db.models.expressions import RawSQL
    from django.forms.models import ModelChoiceIterator
    from django.urls import reverse

    select = swapped(
        *(f"provisioner.web.{module}.lean_selects" for module in ("filters", "forms")),
        by=lambda form: None,
    )
    yield "LeanSelect", reverse("admin-workspace-list"), select
    yield "LeanSelect", reverse("my-account"), select
    checkbox = tag_instead("checkbox", lambda option: option.tag())
    yield "{% checkbox %}", reverse("token-list"), checkbox
    choices = "provisioner.catalog.forms.choices.TemplateChoiceField.iterator"
    names = swapped(choices, by=ModelChoiceIterator)
    yield "NamesToChoose", reverse("admin-workspace-list"), names

    def rows_anew(prepared: Any, *values: object) -> list[Any]:
        return list(prepared._build(*(RawSQL("%s", (value,)) for value in values)))

    anew = swapped("provisioner.lib.prepared.Prepared.rows", by=rows_anew)
    for page in ("workspace-list", "template-list"):
        yield "Prepared", reverse(page), anew

    company.grow(to=MANY_WORKSPACES)
    pages.vacuum()
    lists = "provisioner.web.lists.listing"
    last = "?page=99999"
    by_key = swapped(f"{lists}.KeyPaginator", by=Paginator)
    yield "KeyPaginator", reverse("admin-workspace-list") + last, by_key
    yield "KeyPaginator", reverse("audit-log") + last, by_key
    counting = swapped(f"{lists}.CountingPaginator", by=Paginator)
    yield "CountingPaginator", reverse("abandoned-list"), counting


def swapped(*names: str, by: Any) -> Swap:
    """Return a context manager that puts something else in place of these names."""

    @contextmanager
    def swap() -> Iterator[None]:
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(mock.patch(name, by))
            yield

    return swap


def tag_instead(name: str, function: Callable[..., Any]) -> Swap:
    """Return a context manager that puts another function behind a template tag."""

    @contextmanager
    def swap() -> Iterator[None]:
        from provisioner.web.templatetags.cloneyard import register

        ours = register.tags[name]
        register.simple_tag(function, name=name)
        try:
            yield
        finally:
            register.tags[name] = ours

    return swap


if __name__ == "__main__":
    main()
