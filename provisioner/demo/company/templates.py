"""The templates of the studio, and what decides when they are built."""

from __future__ import annotations

import datetime as dt
import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from provisioner.accounts.models import User
from provisioner.catalog.models import (
    Quality,
    RefreshPolicy,
    ServerWatch,
    Snapshot,
    SubmittedChange,
    Template,
    TemplateCheck,
    TemplateWatch,
)
from provisioner.catalog.steps.volume import template_client_spec
from provisioner.demo.company.changes import History
from provisioner.demo.company.events import Log
from provisioner.demo.company.operations import Ran
from provisioner.demo.company.places import Places
from provisioner.demo.company.plans import GIB, Plan
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.trees import paths_of
from provisioner.engine.models import Subject
from provisioner.gateways.perforce.files.have import have_line, have_list_of
from provisioner.gateways.perforce.specs import render_client_spec

NIGHTLY = "0 2 * * 1-5"
WEEKLY = "30 3 * * 6"


@dataclass(kw_only=True)
class Built:
    """A template with its builds and snapshots, oldest first."""

    plan: Plan
    template: Template
    client_spec: str
    is_cleaned_weekly: bool = False
    snapshots: list[Snapshot] = field(default_factory=list)
    builds: list[Ran] = field(default_factory=list)
    busy_until: dt.datetime | None = None
    broken_by: str = ""

    @property
    def offered(self) -> list[Snapshot]:
        """Return the snapshots that were once the default and still exist."""
        return [
            snapshot
            for snapshot in self.snapshots
            if snapshot.quality != Quality.FAILED and snapshot.is_there
        ]

    def default_at(self, moment: dt.datetime) -> Snapshot:
        """Return what a new workspace got at a moment."""
        offered = self.offered
        place = bisect_right([each.created_at for each in offered], moment)
        return offered[max(place - 1, 0)]


def define(
    studio: Studio,
    plans: Iterable[Plan],
    *,
    places: Places,
    admin: User,
    owners: Sequence[User],
    log: Log,
) -> list[Built]:
    """Make the templates, as administrators define them, with their owners."""
    return [
        _template(
            studio,
            plan,
            number,
            places=places,
            admin=admin,
            owner=owners[number % len(owners)],
            log=log,
        )
        for number, plan in enumerate(plans)
    ]


def _template(
    studio: Studio,
    plan: Plan,
    number: int,
    *,
    places: Places,
    admin: User,
    owner: User,
    log: Log,
) -> Built:
    chance, rows = studio.chance, studio.rows
    at = studio.calendar.began - dt.timedelta(days=chance.uniform(1, 40))
    used = int(plan.gib * GIB * chance.uniform(0.86, 0.94))
    is_new = plan.standing == "new"
    template = rows.add(
        Template(
            subject=rows.add(Subject(kind="template")),
            site=places.abroad if plan.is_abroad else places.home,
            name=plan.name,
            description=plan.description,
            view=plan.view,
            build_command=plan.build_command,
            build_environment={"STUDIO_BUILD": "1"},
            test_command=plan.test_command,
            wanted_quality="tested" if plan.wants_tested else "built",
            ignore_patterns=plan.ignore_patterns,
            volume_size_bytes=int(plan.gib * GIB * 1.25),
            snapshots_to_keep=5,
            state="new" if is_new else "ready",
            tag=studio.uuid(),
            volume_uuid="" if is_new else str(studio.uuid()),
            actual_size_bytes=None if is_new else int(plan.gib * GIB * 1.25),
            used_bytes=None if is_new else used,
            used_inodes=None if is_new else plan.files * 3,
            max_inodes=None if is_new else max(plan.files * 8, 100_000),
            owner=owner,
            created_at=at,
        )
    )
    log.tell(template, "template_defined", "Defined.", at=at, by=admin)
    is_cleaned_weekly = plan.policy != "manual" and number % 3 == 0
    if plan.policy != "manual":
        rows.add(
            RefreshPolicy(
                template=template,
                mode="on_change" if plan.policy == "on_change" else "cron",
                cron="" if plan.policy == "on_change" else NIGHTLY,
                clean_cron=WEEKLY if is_cleaned_weekly else "",
                changed_at=at + dt.timedelta(hours=2),
            )
        )
        word = "after changes" if plan.policy == "on_change" else "on a schedule"
        log.tell(
            template,
            "refresh_policy_changed",
            f"Refreshed: {word}.",
            at=at + dt.timedelta(hours=2),
            by=admin,
        )
    rows.add(
        TemplateCheck(
            template=template,
            files=plan.files,
            size_bytes=used,
            depot_files=149_900,
            remarks=_remarks(plan),
            checked_at=at,
        )
    )
    spec = render_client_spec(template_client_spec(template))
    return Built(
        plan=plan,
        template=template,
        client_spec=spec,
        is_cleaned_weekly=is_cleaned_weekly,
    )


def _remarks(plan: Plan) -> list[dict[str, str]]:
    if plan.tool != "make":
        return []
    sentence = (
        "Builds go on from the last one, and its client has nomodtime: files that come "
        "back to an older revision look new, so make builds them again."
    )
    return [{"kind": "modtime", "sentence": sentence}]


def withdraw_unneeded(built: Built, *, needed: set[int]) -> None:
    """Delete the snapshots that nothing needs; `needed` are keys of used ones.

    The others were deleted by the build that made them superfluous.
    """
    offered, kept = built.offered, built.template.snapshots_to_keep
    enough = ("tested",) if built.plan.wants_tested else ("built", "tested")
    good = [each for each in offered if each.quality in enough]
    tested = [each for each in offered if each.quality == Quality.TESTED]
    stay = {each.pk for each in (*built.snapshots[-kept:], *good[-1:], *tested[-1:])}
    for place, snapshot in enumerate(built.snapshots):
        if snapshot.pk in stay or snapshot.pk in needed:
            continue
        later = built.snapshots[min(place + kept, len(built.snapshots) - 1)]
        snapshot.deleted_at = later.created_at + dt.timedelta(seconds=9)


def remember_changes(studio: Studio, built: list[Built], history: History) -> None:
    """Add the known changes since each template's oldest published snapshot."""
    servers = {each.template.site.perforce_server for each in built}
    for server in servers:
        studio.rows.add(
            ServerWatch(
                server=server,
                newest_change=history.newest_number,
                polled_at=studio.calendar.ago(seconds=20),
                next_poll_at=studio.calendar.ago(seconds=-10),
            )
        )
    rows: dict[tuple[int, int], SubmittedChange] = {}
    through = SubmittedChange.templates.through
    for each in built:
        since = oldest_published(each)
        if since is None:
            continue
        server = each.template.site.perforce_server
        studio.rows.add(
            TemplateWatch(
                template=each.template,
                server=server,
                view="\n".join(each.template.view_lines),
                since=since,
            )
        )
        for change in history.of(each.plan.name):
            if change.number <= since:
                continue
            key = (server.pk, change.number)
            if key not in rows:
                rows[key] = studio.rows.add(
                    SubmittedChange(
                        server=server,
                        number=change.number,
                        user=change.user.perforce_name,
                        submitted_at=change.at,
                        title=change.title,
                        recorded_at=change.at + dt.timedelta(seconds=14),
                    )
                )
            studio.rows.add(through(submittedchange=rows[key], template=each.template))


def oldest_published(built: Built) -> int | None:
    """Return the change of the oldest existing snapshot, or None."""
    there = [each.change for each in built.snapshots if each.is_there]
    return min(there, default=None)


def pin(built: Built, history: History) -> None:
    """Give published snapshots the have list of a flush to their change.

    The depot has each file once up to the oldest of them, and each change after it.
    """
    since = oldest_published(built)
    if since is None:
        return
    lines = {path: have_line(path, revision="1") for path in paths_of(built.plan)}
    revisions: Counter[str] = Counter()
    later = [each for each in history.of(built.plan.name) if each.number > since]
    for snapshot in sorted(built.snapshots, key=lambda each: each.change):
        if not snapshot.is_there:
            continue
        while later and later[0].number <= snapshot.change:
            for path in later.pop(0).paths[built.plan.name]:
                revisions[path] += 1
                lines[path] = have_line(path, revision=f"{revisions[path] + 1}")
        have = have_list_of(list(lines.values()))
        snapshot.have_count, snapshot.have_digest = have.count, have.digest


def fake_digest(built: Built, change: int) -> str:
    """Return a digest for a have list that cannot be queried any more."""
    return hashlib.sha256(f"{built.plan.name}@{change}".encode()).hexdigest()
