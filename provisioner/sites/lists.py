"""Lists of sites and of Perforce servers."""

from __future__ import annotations

from typing import Any, ClassVar

from provisioner.engine.models import SlotBudget
from provisioner.sites.actions.pausing import (
    perforce_server_pause,
    perforce_server_resume,
)
from provisioner.sites.forms import PauseForm
from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.queries import site_overviews, sites_matching
from provisioner.sites.slots_overview import server_lines, servers_matching
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing

SITES = Listing[Site](
    name="sites",
    one="site",
    many="sites",
    columns=(
        Column("name", "Site", "site.name", "name"),
        Column("title", "", "site.title"),
        Column("health", "Health", lambda row: row.connection.health.value),
        Column("failure", "", "connection.first_failure"),
        Column(
            *("available_bytes", "Space"),
            lambda row: row.capacity and row.capacity.aggregate_available_bytes,
            "capacity__aggregate_available_bytes",
            has_gaps=True,
        ),
        Column("hosts", "Hosts", lambda row: " ".join(row.hosts)),
        Column(
            *("perforce", "Perforce", "site.perforce_server.name"),
            "perforce_server__name",
            is_unbroken=True,
        ),
        Column(
            *("templates", "Templates", "templates", "templates_count"),
            is_unbroken=True,
            is_number=True,
            begins_descending=True,
        ),
    ),
    cells="sites/_cells.html",
    matching=sites_matching,
    usual="name",
    dress=lambda user, some: site_overviews(some),
    quiet_below=10,
)


class Pause(Act[PerforceServer]):
    name, label, done = "pause", "Pause", "Paused"
    lead = (
        "Running steps finish. No other step that uses them starts, and their "
        "templates are not refreshed."
    )
    form = PauseForm
    rehearsed: ClassVar = {"reason": "…"}

    def do(self, row: PerforceServer, **told: Any) -> SlotBudget:
        return perforce_server_pause(by=self.by, server=row, **told)

    def says(self, row: PerforceServer, result: SlotBudget) -> str:
        return "No step starts there until it is resumed."


class Resume(Act[PerforceServer]):
    name, label, done = "resume", "Resume", "Resumed"
    lead = "Waiting steps start, people's first."

    def do(self, row: PerforceServer, **told: Any) -> bool:
        return perforce_server_resume(by=self.by, server=row)

    def says(self, row: PerforceServer, result: bool) -> str:
        return "Resumed." if result else "It is not paused, so nothing changes."


PERFORCE_SERVERS = Listing[PerforceServer](
    name="perforce-servers",
    one="server",
    many="servers",
    columns=(
        Column("name", "Server", "server.name", "name"),
        Column("p4port", "", "server.p4port", "p4port"),
        Column("kind", "", "server.kind"),
        Column("upstream", "", lambda row: row.server.upstream or ""),
        Column("server_id", "", "server.server_id"),
        Column("health", "Health", lambda row: row.connection.health.value),
        Column("failure", "", "connection.first_failure"),
        Column("running", "Running", "running", is_number=True),
        Column("may_run", "", "present_limit"),
        Column("waiting", "Waiting", "waiting", is_number=True),
        Column("paused", "", lambda row: row.pause.paused_reason if row.pause else ""),
        Column(
            *("newest_change", "Newest change"),
            lambda row: row.watch and row.watch.newest_change,
            "watch__newest_change",
            has_gaps=True,
        ),
        Column("polled_at", "Polled", lambda row: row.watch and row.watch.polled_at),
    ),
    cells="sites/perforce_servers/_cells.html",
    matching=servers_matching,
    usual="name",
    dress=lambda user, some: server_lines(some),
    acts=(Pause, Resume),
    quiet_below=10,
)
