"""How long pages take, how many queries and how large they are, on generated rows.

Prints JSON lines: one for each page at 1,000 workspaces and at 32,767, and a summary of
each case that names the misses. Every page that needs no number in its address is asked
for as an administrator and as a developer, lists in other orders and at their last
page, too; details of one row each. Nothing runs beside it but an embedded PostgreSQL in
a directory that is gone afterwards. PAGES_SCALES (numbers of workspaces) and
PAGES_ROUNDS change the numbers; `--only WORD` asks for the pages with a word in their
address. `cpu_ms` is what a request takes of a processor here and in PostgreSQL: on a
machine that is busy with other things it says more than the clock.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import os
import sys
import time
import uuid
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

SCALES = [int(n) for n in os.environ.get("PAGES_SCALES", "1000,32767").split(",")]
ROUNDS = int(os.environ.get("PAGES_ROUNDS", "40"))
TEMPLATES, TEAMS, PEOPLE, SNAPSHOTS = 200, 40, 2000, 5
TOKENS, DELIVERIES, FINDINGS = 500, 2000, 300
AT_MOST = {"p95_ms_small": 60, "p95_ms": 100, "bytes": 150 * 1024}
SMALL = 1000

NONE = "!"  # no password opens these accounts
SPEC = "Client:\tt\n\nRoot:\t/t\n\nView:\n\t//depot/main/... //t/...\n"

# Without a page of their own, or asking others than the database.
LEFT_OUT = {"healthz", "readyz", "logout", "command-line", "login"}
OTHER_LOOKS = {
    "admin-workspace-list": ["?page=99999", "?sort=owner", "?q=w-12&state=failed"],
    "abandoned-list": ["?page=99999", "?sort=-unique_bytes", "?q=w-12"],
    "operation-list": ["?page=99999", "?page=330", "?state=failed", "?q=w-12"],
    "trail": ["?page=99999", "?page=490", "?actor=p7", "?q=lease"],
    "person-list": ["?page=99999", "?sort=-unique_bytes"],
    "template-list": ["?page=99999"],
    "palette": ["?q=12"],
}


def main() -> None:
    """Measure in a directory of our own, and remove it however that ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    set_up("pages")
    rows = Rows()
    summaries = []
    for scale in SCALES:
        rows.fill(scale)
        vacuum()
        found = []
        for figure in figures(scale, only=only):
            print(json.dumps(figure), flush=True)
            found.append(figure)
        summaries.append(summary(scale, found))
    for one in summaries:
        print(json.dumps(one), flush=True)


def set_up(name: str) -> None:
    """Have Django and an empty database in a directory of our own."""
    from shared.places import place_of_its_own  # found where this is the program

    place_of_its_own(name)
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

    for name in ("admin", "p0"):
        browser = Client()
        browser.force_login(User.objects.get(username=name))
        for page in addresses(User.objects.get(username="p0")):
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


class Rows:
    """Rows as an installation would have them, made in bulk."""

    def __init__(self) -> None:
        """Make everything but workspaces and what happens to them."""
        from provisioner.accounts.models import Team, User
        from provisioner.catalog.models import Snapshot, Template
        from provisioner.engine.models import Operation
        from provisioner.sites.models import (
            CapacityDay,
            PerforceServer,
            Site,
            SiteCapacity,
        )

        now = dt.datetime.now(dt.UTC)
        self.now, self.made = now, 0
        self.admin = User.objects.create(
            username="admin", password=NONE, is_staff=True, is_superuser=True
        )
        teams = Team.objects.bulk_create(
            Team(name=f"team {n}", max_workspaces=2000) for n in range(TEAMS)
        )
        self.people = User.objects.bulk_create(
            User(
                username=f"p{n}",
                password=NONE,
                uid=20000 + n,
                gid=20000,
                team=teams[n % TEAMS],
                max_workspaces=100 if n % 3 else None,
                last_login=now - dt.timedelta(hours=n),
            )
            for n in range(PEOPLE)
        )
        server = PerforceServer.objects.create(
            name="p4", p4port="127.0.0.1:9", p4user="cloneyard"
        )
        self.site = Site.objects.create(
            name="munich",
            perforce_server=server,
            ontap_host="127.0.0.1",
            ontap_port=9,
            ontap_user="admin",
            svm="svm",
            aggregate="aggr1",
            mount_root="/nonexistent/cloneyard",
            export_clients=["127.0.0.1"],
            template_uid=20000,
            template_gid=20000,
        )
        tib = 2**40
        SiteCapacity.objects.create(
            site=self.site,
            aggregate_size_bytes=90 * tib,
            aggregate_used_bytes=40 * tib,
            aggregate_available_bytes=50 * tib,
            logical_bytes=900 * tib,
            saved_bytes=850 * tib,
            saved_within_bytes=20 * tib,
            volumes=30_000,
            max_volumes=40_000,
            measured_at=now,
        )
        CapacityDay.objects.bulk_create(
            CapacityDay(
                site=self.site,
                day=now.date() - dt.timedelta(days=n),
                size_bytes=90 * tib,
                used_bytes=(45 - n // 10) * tib,
                clones=30_000 - 100 * n,
            )
            for n in range(90)
        )
        templates = Template.objects.bulk_create(
            Template(
                subject=subject,
                site=self.site,
                name=f"template-{n}",
                description="A game's main line, with everything that its build makes.",
                view="//depot/main/... //template/...",
                build_command="make -j32 all",
                state="ready",
                volume_uuid=str(uuid.uuid4()),
                owner=self.admin,
            )
            for n, subject in enumerate(subjects("template", TEMPLATES))
        )
        self.snapshots = Snapshot.objects.bulk_create(
            Snapshot(
                template=template,
                name=f"c{1000 + n}.b{n}",
                ontap_uuid=str(uuid.uuid4()),
                change=1000 + n,
                client_spec=SPEC,
                have_count=600_000,
                have_digest="0" * 64,
            )
            for template in templates
            for n in range(SNAPSHOTS)
        )
        Operation.objects.bulk_create(
            Operation(
                kind="template_build",
                subject=template.subject,
                state="failed" if n == 2 else "succeeded",
                status_code="build_failed" if n == 2 else "",
                status_message="The build ended with 2." if n == 2 else "",
                requested_by=self.admin,
                ended_at=now,
            )
            for template in templates
            for n in range(SNAPSHOTS)
        )

        self._everything_else(templates)

    def _everything_else(self, templates: list[Any]) -> None:
        """Make what administrators keep, and what people made of it."""
        from provisioner.accounts.models import ApiToken
        from provisioner.bisect.models import Bisection
        from provisioner.drift.models import Finding
        from provisioner.leases.models import LeasePolicy
        from provisioner.notify.models import Webhook, WebhookDelivery
        from provisioner.pools.models import Pool

        people, soon = self.people, self.now + dt.timedelta(days=30)
        for n, person in enumerate(people[:TOKENS]):
            digest = f"{n:0128x}"
            ApiToken(
                user=person,
                digest=digest,
                token_key=f"{n:015d}",
                name=f"t{n}",
                expiry=soon,
            ).save()
        webhooks = Webhook.objects.bulk_create(
            Webhook(
                owner=people[0],
                url=f"https://h{n}.example/",
                events=["template.built"],
            )
            for n in range(TEMPLATES)
        )
        WebhookDelivery.objects.bulk_create(
            WebhookDelivery(
                webhook=webhooks[0],
                event="template.built",
                body='{"type": "template.built"}',
                state="delivered",
                attempts=1,
                next_try_at=None,
                response_code=200,
                ended_at=self.now,
            )
            for n in range(DELIVERIES)
        )
        Pool.objects.bulk_create(
            Pool(template=template, purpose="ci", owner=people[1], size=2)
            for template in templates
        )
        LeasePolicy.objects.bulk_create(
            LeasePolicy(template=template, purpose="ci", default_seconds=3600)
            for template in templates
        )
        Bisection.objects.bulk_create(
            Bisection(
                template=template,
                owner=people[0],
                good=1,
                bad=9,
                state="stopped",
                status_code="stopped",
                status_message="Stopped.",
                ended_at=self.now,
            )
            for template in templates
        )
        Finding.objects.bulk_create(
            Finding(
                site=self.site,
                kind="volume_without_row",
                subject=f"cy_left_{n}",
                sentence="A volume with our tag that no row knows.",
                first_seen_at=self.now,
                last_seen_at=self.now,
            )
            for n in range(FINDINGS)
        )

    def fill(self, number: int) -> None:
        """Make workspaces until there are so many, with their stories."""
        from django.db import connection

        from provisioner.engine.models import Operation
        from provisioner.workspaces.models import Workspace

        batch = [self._workspace(n) for n in range(self.made, number)]
        for workspace, subject in zip(
            batch, subjects("workspace", len(batch)), strict=True
        ):
            workspace.subject = subject
        Workspace.objects.bulk_create(batch, batch_size=2000)
        operations = [
            Operation(
                kind="provision",
                subject=workspace.subject,
                state="failed" if workspace.state == "failed" else "succeeded",
                status_code=workspace.status_code,
                status_message=workspace.status_message,
                requested_by=workspace.owner,
                ended_at=self.now,
            )
            for workspace in batch
        ]
        Operation.objects.bulk_create(operations, batch_size=2000)
        self._steps_and_events(operations)
        self.made = number
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE workspaces_workspace "
                "SET created_at = now() - id * interval '20 minutes'"
            )
            cursor.execute(
                "UPDATE engine_operation SET created_at = w.created_at, "
                "ended_at = w.created_at + interval '20 seconds' "
                "FROM workspaces_workspace w "
                "WHERE w.subject_id = engine_operation.subject_id"
            )
            cursor.execute(
                "UPDATE engine_step SET queued_at = o.created_at, "
                "first_started_at = o.created_at, started_at = o.created_at, "
                "ended_at = o.ended_at "
                "FROM engine_operation o WHERE o.id = operation_id"
            )

    def _workspace(self, n: int) -> Any:
        from provisioner.workspaces.models import Workspace

        snapshot = self.snapshots[n * 7 % len(self.snapshots)]
        owner = self.people[0 if n % 400 == 0 else n % PEOPLE]
        assert owner.uid is not None
        assert owner.gid is not None
        state = {4: "failed", 5: "trashed", 6: "retired"}.get(n % 19, "ready")
        now = self.now
        is_forgotten = n % 3 == 0
        worked_at = now - dt.timedelta(days=45 if is_forgotten else 1)
        seen = {"at": worked_at.isoformat(), "detail": ""}
        return Workspace(
            owner=owner,
            site=self.site,
            template=snapshot.template,
            snapshot=snapshot,
            name=f"w-{n}",
            uid=owner.uid,
            gid=owner.gid,
            p4_user=owner.username,
            state=state,
            status_code="full" if state == "failed" else "",
            status_message="The aggregate is full." if state == "failed" else "",
            volume_uuid=str(uuid.uuid4()),
            ready_at=now - dt.timedelta(days=60 if is_forgotten else 0),
            activity=dict.fromkeys(("accessed", "submitted", "files"), seen),
            activity_seen_at=now,
            worked_at=worked_at,
            used_at=worked_at,
            expires_at=now + dt.timedelta(days=n % 30, hours=1),
            trashed_at=now if state == "trashed" else None,
            purge_at=now + dt.timedelta(days=2) if state == "trashed" else None,
            retired_at=now if state == "retired" else None,
            unique_bytes=n * 2**20,
            measured_at=now,
        )

    def _steps_and_events(self, operations: list[Any]) -> None:
        """Make those of the first operation; the others get the same."""
        from provisioner.audit_log.models import Event
        from provisioner.engine.models import Step
        from provisioner.workspaces.workflows import PROVISION

        first = operations[0]
        for position, spec in enumerate(PROVISION):
            step = Step.objects.create(
                operation=first,
                name=spec.name,
                position=position,
                state="done",
                attempt=1,
                queued_at=self.now,
                first_started_at=self.now,
                started_at=self.now,
                ended_at=self.now,
            )
            copy_of(step, operation_id="o.id")
        for kind, message in (
            ("workspace_asked", "Asked for."),
            ("workspace_ready", "Ready."),
            ("lease_extended", "Extended its lease."),
        ):
            event = Event.objects.create(
                kind=kind,
                message=message,
                actor=first.requested_by,
                actor_name=first.requested_by.username,
                via="session 0a1b2c3d",
                subject_kind="workspace",
                subject_id=first.subject.row.pk,
                subject=first.subject.row.name,
                workspace=first.subject.row,
            )
            copy_of(
                event,
                workspace_id="w.id",
                subject_id="w.id",
                subject="w.name",
                actor_id="u.id",
                actor_name="u.username",
                at="now() - w.id * interval '20 minutes'",
            )


def subjects(kind: str, number: int) -> list[Any]:
    """Make what operations refer to: rows made in bulk make none themselves."""
    from provisioner.engine.models import Subject

    return Subject.objects.bulk_create(Subject(kind=kind) for _ in range(number))


def copy_of(row: Any, **instead: str) -> None:
    """Copy a row for every later operation, with something else in some columns."""
    from django.db import connection

    table = row._meta.db_table
    columns = [f.column for f in row._meta.concrete_fields if not f.primary_key]
    values = [instead.get(column, f's."{column}"') for column in columns]
    names = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({names}) SELECT {', '.join(values)} "  # noqa: S608
            f"FROM {table} s, engine_operation o "
            "JOIN workspaces_workspace w ON w.subject_id = o.subject_id "
            "JOIN accounts_user u ON u.id = w.owner_id "
            "WHERE s.id = %s AND o.id > %s",
            [row.pk, first_operation_of(row)],
        )


def first_operation_of(row: Any) -> int:
    """Return the operation that a step or an event was made for."""
    if hasattr(row, "operation_id"):
        return int(row.operation_id)
    return int(row.workspace.operations.get().pk)


if __name__ == "__main__":
    main()
