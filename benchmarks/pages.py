"""How long pages take, how many queries and how large they are, on generated rows.

Prints JSON lines: one for each page at 1,000 workspaces of 300 people, and at 32,767 of
5,000, and a summary of each case that names the misses. Every page that needs no number
in its address is asked for as an administrator and as a developer, lists in other
orders and at their last page, too; details of one row each. Nothing runs beside it but
an embedded PostgreSQL in a directory that is gone afterwards. PAGES_SCALES (numbers of
workspaces) and PAGES_ROUNDS change the numbers; `--only WORD` asks for the pages with a
word in their address. `cpu_ms` is what a request takes of a processor here and in
PostgreSQL: on a machine that is busy with other things it says more than the clock.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

SCALES = [int(n) for n in os.environ.get("PAGES_SCALES", "1000,32767").split(",")]
ROUNDS = int(os.environ.get("PAGES_ROUNDS", "40"))
AT_MOST = {"p95_ms_small": 60, "p95_ms": 100, "bytes": 150 * 1024}
SMALL = 1000

# Without a page of their own, or asking others than the database.
LEFT_OUT = {"healthz", "readyz", "logout", "command-line", "login"}
OTHER_LOOKS = {
    "admin-workspace-list": [
        *("?page=99999", "?sort=owner", "?q=aurora&state=failed"),
    ],
    "abandoned-list": ["?page=99999", "?sort=-unique_bytes", "?q=aurora"],
    "operation-list": ["?page=99999", "?page=330", "?state=failed", "?q=aurora"],
    "audit-log": ["?page=99999", "?page=490", "?actor=alice", "?q=lease"],
    "person-list": ["?page=99999", "?sort=-unique_bytes"],
    "template-list": ["?page=99999"],
    "palette": ["?q=12"],
    "overview": ["?more=1"],
}


def main() -> None:
    """Measure in a directory of our own, and remove it however that ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    set_up("pages")
    from django.db import connection
    from shared.filled import company_of  # found where this is the program

    from provisioner.lib.garbage import spare_what_is_loaded

    summaries, empty = [], connection.settings_dict["NAME"]
    for scale in SCALES:
        # People do not come later, so each number has a company of its own.
        new_database(f"pages_{scale}", like=empty)
        company_of(min(scale, SMALL), people=people_at(scale)).grow(to=scale)
        vacuum()
        # A web server has not made a company: its objects would stop a page or two.
        spare_what_is_loaded()
        found = []
        for figure in figures(scale, only=only):
            print(json.dumps(figure), flush=True)
            found.append(figure)
        summaries.append(summary(scale, found))
    for one in summaries:
        print(json.dumps(one), flush=True)


def people_at(scale: int) -> int:
    """Return how many people have so many workspaces: 300 of 1,000, at most 5,000."""
    return min(scale * 3 // 10, 5000)


def new_database(name: str, *, like: str) -> None:
    """Go on in a copy of a database that nobody else is connected to."""
    from django.db import connection

    connection.close()
    connection.settings_dict["NAME"] = "postgres"
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{like}"')
    connection.close()
    connection.settings_dict["NAME"] = name


def set_up(name: str, *, keep: Path | None = None) -> None:
    """Have Django and an empty database in a directory of our own, or one to keep."""
    from shared.places import place_of_its_own, use_place  # where this is the program

    if keep is None:
        place_of_its_own(name)
    else:
        use_place(keep)
    os.environ.update(LOG_LEVEL="ERROR", DEBUG="false", ALLOWED_HOSTS="testserver")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.STORAGES["staticfiles"]["BACKEND"] = (
        "django.contrib.staticfiles.storage.StaticFilesStorage"
    )
    call_command("migrate", verbosity=0)
    import_module("provisioner.wsgi")  # with all that the web server has loaded


def summary(scale: int, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is over a limit at a scale, and the most that any page takes."""
    return {
        "figure": "pages over a limit",
        "workspaces": scale,
        "at_most": {"p95_ms": p95_allowed(scale), "bytes": AT_MOST["bytes"]},
        "pages": len(found),
        "worst_p95_ms": max((one["p95_ms"] for one in found), default=0),
        "worst_cpu_ms": max((one["cpu_ms"] for one in found), default=0),
        "worst_bytes": max((one["bytes"] for one in found), default=0),
        "misses": [
            {key: one[key] for key in ("page", "who", "p95_ms", "cpu_ms", "over")}
            for one in found
            if one["over"]
        ],
        "load": round(os.getloadavg()[0], 1),
    }


def p95_allowed(scale: int) -> int:
    return AT_MOST["p95_ms_small"] if scale <= SMALL else AT_MOST["p95_ms"]


def vacuum() -> None:
    """Do what the server does by itself in time."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def figures(scale: int, *, only: str) -> Iterator[dict[str, Any]]:
    """Yield what each page takes, as both kinds of people."""
    from django.test import Client

    from provisioner.accounts.models import User

    for name in ("admin", "alice"):
        browser = Client()
        browser.force_login(User.objects.get(username=name))
        for page in addresses(User.objects.get(username="alice")):
            answer = browser.get(page) if only in page else None
            if answer is not None and answer.status_code == 200:
                yield measured(browser, page, who=name, scale=scale)


def measured(browser: Any, page: str, *, who: str, scale: int) -> dict[str, Any]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    browser.get(page)
    with CaptureQueriesContext(connection) as queries:
        size = len(browser.get(page).content)
    number = len(queries)  # the next request forgets them
    times = []
    cpu_before = processor_ms()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        browser.get(page)
        times.append(time.perf_counter() - began)
    cpu = (processor_ms() - cpu_before) / ROUNDS
    times.sort()
    p95 = times[math.ceil(len(times) * 0.95) - 1] * 1000
    allowed = p95_allowed(scale)
    return {
        "figure": "page",
        "page": page,
        "who": who,
        "workspaces": scale,
        "p50_ms": round(times[len(times) // 2] * 1000, 1),
        "p95_ms": round(p95, 1),
        "fastest_ms": round(times[0] * 1000, 1),
        "cpu_ms": round(cpu, 1),
        "queries": number,
        "bytes": size,
        "over": [
            *(["time"] if p95 > allowed else []),
            *(["bytes"] if size > AT_MOST["bytes"] else []),
        ],
        "load": round(os.getloadavg()[0], 1),
    }


def processor_ms() -> float:
    """Return what this process and its server process have used of a processor."""
    from django.db import connection

    server = connection.connection.info.backend_pid
    after_name = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    ticks = int(after_name[11]) + int(after_name[12])
    return time.process_time() * 1000 + ticks * 1000 / os.sysconf("SC_CLK_TCK")


def addresses(owner: Any) -> list[str]:
    """Return every page without a number in its address, and some with one."""
    from django.urls import URLPattern, get_resolver, reverse

    from provisioner.catalog.models import Template
    from provisioner.engine.models import Operation
    from provisioner.notify.models import Webhook
    from provisioner.pools.models import Pool

    patterns = [p for p in get_resolver().url_patterns if hasattr(p, "url_patterns")]
    pages = next(p for p in patterns if str(p.pattern) == "").url_patterns
    found = []
    for pattern in pages:
        if not isinstance(pattern, URLPattern) or pattern.name is None:
            continue
        if pattern.pattern.converters or pattern.name in LEFT_OUT:
            continue
        address = reverse(pattern.name)
        if address.endswith(".csv"):
            continue
        looks = OTHER_LOOKS.get(pattern.name, [])
        found += [address, *(address + look for look in looks)]
    workspace = owner.workspaces.filter(state="ready").first()
    template = Template.objects.order_by("pk").first()
    build = Operation.objects.filter(kind="template_build").first()
    assert workspace is not None
    assert template is not None
    assert build is not None
    webhook = Webhook.objects.order_by("pk").first()
    pool = Pool.objects.order_by("pk").first()
    assert webhook is not None
    assert pool is not None
    return [
        *found,
        reverse("webhook-detail", args=[webhook.pk]),
        reverse("pool-detail", args=[pool.pk]),
        reverse("workspace-detail", args=[workspace.pk]),
        reverse("workspace-retire", args=[workspace.pk]),
        reverse("operation-detail", args=[workspace.operations.first().pk]),
        reverse("template-detail", args=[template.pk]),
        reverse("workspace-create", args=[template.pk]),
        reverse("operation-detail", args=[build.pk]),
        reverse("person-detail", args=[owner.pk]),
    ]


if __name__ == "__main__":
    main()
