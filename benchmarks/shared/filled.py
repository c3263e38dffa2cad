"""A database full of the demo's company, for benchmarks of pages."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from provisioner.demo.company.company import Company

TEMPLATES, TEAMS, PEOPLE = 200, 40, 5000
SITES = 6
BUILD_SHARE, DELIVERIES, FINDINGS = 0.06, 2000, 300


def company_of(workspaces: int, *, people: int = PEOPLE) -> Company:
    """Return a company with so many workspaces, which can grow; Django is set up."""
    from django.utils import timezone

    from provisioner.demo.company.company import Company
    from provisioner.demo.company.studio import CompanySize

    size = CompanySize(
        people=people,
        teams=TEAMS,
        templates=TEMPLATES,
        workspaces=workspaces,
        build_share=BUILD_SHARE,
        deliveries=DELIVERIES,
        findings=FINDINGS,
    )
    company = Company(size, now=timezone.now())
    company.found()
    company.grow(to=workspaces)
    return company


def spread_over_sites() -> None:
    """Spread templates, with their workspaces, over more sites than the company has."""
    from django.db import connection

    from provisioner.sites.models import Site

    first = Site.objects.order_by("pk")[0]
    for number in range(Site.objects.count(), SITES):
        first.pk, first.name = None, f"site{number}"
        first.svm, first.mount_root = f"svm{number}", f"/srv/cloneyard/site{number}"
        first._state.adding = True
        first.save()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE place AS " + _PLACES)
        for table, key in (
            ("workspaces_workspace", "template_id"),
            ("catalog_template", "id"),
        ):
            cursor.execute(
                f"UPDATE {table} AS row SET site_id = place.site "  # noqa: S608
                f"FROM place WHERE place.template = row.{key} AND row.site_id = home"
            )


# Those with mirrors, copies and pools stay where these are.
_PLACES = """
    SELECT template.id AS template, template.site_id AS home, site.id AS site
    FROM catalog_template AS template
    JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number FROM sites_site)
        AS site ON site.number = template.id % (SELECT count(*) FROM sites_site)
    WHERE template.id NOT IN (SELECT template_id FROM mirrors_mirror)
        AND template.id NOT IN (SELECT template_id FROM pools_pool)
"""


def a_year_of_events(count: int) -> int:
    """Have so many events of a year in the audit log, repeating those that it has."""
    from django.db import connection, transaction
    from django.utils import timezone

    from provisioner.audit_log.models import Event
    from provisioner.audit_log.partitions import ensure_months

    now = timezone.now()
    year = dt.timedelta(days=365)
    with transaction.atomic(), connection.cursor() as cursor:
        # Those of the company were written before there were months.
        cursor.execute("CREATE TEMPORARY TABLE known ON COMMIT DROP AS TABLE " + _LOG)
        cursor.execute("SET LOCAL cloneyard.allow_truncate = on; TRUNCATE " + _LOG)
        ensure_months((now - year).date(), now.date())
        # Half of the time would go to keys of known rows and to indexes row by row.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "SELECT indexrelid::regclass, pg_get_indexdef(indexrelid) FROM pg_index "
            "WHERE indrelid = %s::regclass AND NOT indisprimary",
            [_LOG],
        )
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name}")
        values: dict[str, Any] = {"count": count, "since": now - year, "year": year}
        cursor.execute(_EVENTS, values)
        for _, definition in indexes:
            cursor.execute(definition.replace(" ON ONLY ", " ON "))
    return Event.objects.count()


_LOG = "audit_log_event"
_COLUMNS = """kind, message, reason, actor_id, actor_name, via, ip, user_agent,
    subject_kind, subject_id, subject, workspace_id, template_id, data"""
_EVENTS = f"""
    WITH numbered AS MATERIALIZED (
        SELECT *, row_number() OVER (ORDER BY at, id) - 1 AS number FROM known)
    INSERT INTO audit_log_event (at, {_COLUMNS})
    SELECT %(since)s::timestamptz + %(year)s::interval * n / %(count)s, {_COLUMNS}
    FROM generate_series(0, %(count)s::bigint - 1) AS n
    JOIN numbered ON number = n * 7919 %% (SELECT count(*) FROM numbered)
    ORDER BY n
"""  # noqa: S608
