"""The studio's two sites, with their Perforce servers and space."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Template
from provisioner.demo import seed
from provisioner.demo.company.studio import Studio
from provisioner.drift.models import DriftCheck, FarSide
from provisioner.engine.models import SlotBudget
from provisioner.lib.limits import (
    CloneLimitReached,
    InodesLow,
    SnapshotLimitReached,
    TeamQuotaOfBytesReached,
    TeamQuotaReached,
)
from provisioner.limits.models import LimitDay
from provisioner.limits.samples import DAYS_KEPT
from provisioner.sites.models import (
    AggregateSpace,
    CapacityDay,
    ConnectionCheck,
    ConnectionTest,
    PerforceServer,
    ServerAbilities,
    ServerKind,
    Site,
    SiteCapacity,
)

TIB = 2**40
ABROAD = "montreal"
BUILDS = "builds"
CLIENT_TYPES = ["writeable", "readonly", "partitioned", "partitioned-jnl", "graph"]
WHY_PAUSED = "Its disks are being replaced. Back on Thursday at noon."
ONTAP = "9.16.1P4"


@dataclass(frozen=True, kw_only=True)
class Places:
    """`home` is the demo's site, `abroad` another one, whose server is paused.

    Rules send builds and CI to `builds`, a replica of the server at home.
    """

    home: Site
    abroad: Site
    builds: PerforceServer

    @property
    def all(self) -> tuple[Site, Site]:
        return self.home, self.abroad


def settle(studio: Studio, *, admin: User) -> Places:
    """Add both sites; the lab's ports are set at each start."""
    home = _site(studio, seed.SITE_NAME, title="Munich", svm=seed.SVM)
    abroad = _site(studio, ABROAD, title="Montreal", svm=seed.SVM_ABROAD)
    # The lab has one Perforce server, so that is what both addresses lead to.
    abroad.perforce_server.kind = ServerKind.PROXY
    abroad.perforce_server.upstream = home.perforce_server
    builds = _server(studio, BUILDS)
    builds.kind, builds.upstream = ServerKind.FORWARDING, home.perforce_server
    places = Places(home=home, abroad=abroad, builds=builds)
    _ask(studio, home, admin=admin, servers=[home.perforce_server, builds])
    _ask(studio, abroad, admin=admin, servers=[abroad.perforce_server])
    studio.rows.add(
        SlotBudget(
            server=abroad.perforce_server,
            paused_at=studio.calendar.ago(hours=5),
            paused_by=admin,
            paused_reason=WHY_PAUSED,
        )
    )
    return places


def mount_root(name: str) -> str:
    """Return where the lab shows the namespace of a site's SVM."""
    is_home = name == seed.SITE_NAME
    svm = seed.SVM if is_home else seed.SVM_ABROAD
    return str(seed.lab_root(is_peer=not is_home) / "svm" / svm / "ns")


def _server(studio: Studio, name: str) -> PerforceServer:
    server = studio.rows.add(
        PerforceServer(
            name=name,
            p4port="127.0.0.1:1666",
            p4user="cloneyard",
            accepts_tickets=True,
            flush_limit=6,
        )
    )
    studio.rows.add(
        ServerAbilities(
            server=server, client_types=CLIENT_TYPES, checked_at=studio.calendar.now
        )
    )
    return server


def _site(studio: Studio, name: str, *, title: str, svm: str) -> Site:
    server = _server(studio, name)
    return studio.rows.add(
        Site(
            name=name,
            title=title,
            perforce_server=server,
            ontap_host="127.0.0.1",
            ontap_port=8443,
            ontap_user="admin",
            svm=svm,
            aggregate="aggr1",
            mount_root=mount_root(name),
            rescue_root=str(settings.VAR_DIR / "rescue"),
            ssh_host=f"work-{name}.studio.example",
            export_clients=["127.0.0.1"],
            template_uid=seed.TEMPLATE_UID,
            template_gid=seed.GID,
            clones_open_to="group-reads",
        )
    )


def _ask(
    studio: Studio, site: Site, *, admin: User, servers: list[PerforceServer]
) -> None:
    """Add the results of the last connection test of a site and its servers."""
    seen_at = studio.calendar.ago(days=3)
    abouts: list[tuple[dict[str, Any], str, str]] = [
        ({"site": site}, "web", "Its secrets are set for the web server."),
        ({"site": site}, "worker", f"ONTAP {ONTAP} answers, and the SVM is there."),
        ({"site": site}, "host", "The namespace is mounted with NFS 4.2."),
    ]
    for server in servers:
        abouts += [
            ({"server": server}, "web", "Its secrets are set."),
            ({"server": server}, "worker", "Our account has super access."),
        ]
    for about, place, sentence in abouts:
        test = studio.rows.add(
            ConnectionTest(
                **about,
                place=place,
                asked_at=seen_at,
                asked_by=admin,
                checked_at=seen_at + dt.timedelta(seconds=4),
                host="build-host-01",
            )
        )
        studio.rows.add(
            ConnectionCheck(
                test=test,
                name="reached",
                outcome=ConnectionCheck.Outcome.PASSED,
                sentence=sentence,
            )
        )
    for system in FarSide:
        studio.rows.add(
            DriftCheck(
                site=site,
                system=system,
                checked_at=studio.calendar.ago(minutes=31),
                seconds=studio.chance.uniform(1.2, 6.0),
                objects_seen=studio.chance.randrange(300, 900),
            )
        )


def count_days(
    studio: Studio, template: Template, *, clones: int, snapshots: int
) -> None:
    """Add daily limit samples of a template, as far back as forecasts look."""
    for code, used, growth in (
        (CloneLimitReached.code, clones, 0.006),
        (SnapshotLimitReached.code, snapshots, 0.0),
        (InodesLow.code, template.used_inodes or 0, 0.002),
    ):
        _count_days(studio, code, used, growth=growth, template=template)


def count_days_of_team(
    studio: Studio, team: Team, *, workspaces: int, taken_bytes: int
) -> None:
    """Add daily samples of a team's quotas, as far back as forecasts look."""
    for code, most, used, growth in (
        (TeamQuotaReached.code, team.max_workspaces, workspaces, 0.008),
        (TeamQuotaOfBytesReached.code, team.max_unique_bytes, taken_bytes, 0.01),
    ):
        if most is not None and used:
            _count_days(studio, code, used, growth=growth, team=team)


def _count_days(
    studio: Studio, code: str, used: int, *, growth: float, **whose: Template | Team
) -> None:
    for ago in range(DAYS_KEPT):
        day = studio.calendar.ago(days=ago).astimezone(dt.UTC).date()
        then = int(used * (1 - growth * ago))
        studio.rows.add(LimitDay(**whose, code=code, day=day, used=then))


def measure(
    studio: Studio, site: Site, *, size: int, now_used: int, clones: int, volumes: int
) -> None:
    """Add the daily capacity of a site, and its current one.

    Space grows with use, and drops when somebody cleans up.
    """
    used = float(now_used)
    for ago in range(studio.calendar.days):
        day = (studio.calendar.ago(days=ago)).astimezone(dt.UTC).date()
        week = 1 + 0.02 * math.sin(ago / 7 * math.tau)
        then = max(int(clones * (1 - ago / 300) * week), 1)
        shared = int(then * size / 420)
        studio.rows.add(
            CapacityDay(
                site=site,
                day=day,
                size_bytes=size,
                used_bytes=int(used),
                logical_bytes=int(used) + shared,
                saved_bytes=shared,
                clones=then,
                volumes=max(volumes - clones + then, then),
            )
        )
        used *= 1 - studio.chance.uniform(0, 0.0056)
        if ago % 61 == 40:
            used += size * 0.045
    shared = int(clones * size / 420)
    studio.rows.add(
        SiteCapacity(
            site=site,
            ontap_version=ONTAP,
            aggregate_size_bytes=size,
            aggregate_used_bytes=now_used,
            aggregate_available_bytes=size - now_used,
            logical_bytes=now_used + shared,
            saved_bytes=shared,
            saved_within_bytes=shared // 14,
            volumes=volumes,
            volumes_of_others=6,
            max_volumes=12_000,
            provisioned_bytes=int(size * 2.6),
            measured_at=studio.calendar.ago(seconds=70),
        )
    )
    studio.rows.add(
        AggregateSpace(
            site=site,
            name=site.aggregate,
            node=f"{site.svm}-01",
            size_bytes=size,
            available_bytes=size - now_used,
            provisioned_bytes=int(size * 2.6),
            node_volumes=volumes + 40,
            measured_at=studio.calendar.ago(seconds=70),
        )
    )
