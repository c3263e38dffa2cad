"""Current problems, most severe first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from provisioner.accounts.mails import NO_MAILS, mails_are_sent
from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.directory.queries import sync_in_trouble
from provisioner.drift.queries import open_findings_number
from provisioner.drills.queries import drills_in_trouble
from provisioner.engine.failovers import standby_trouble
from provisioner.engine.models import SlotBudget
from provisioner.engine.releases import side_by_side
from provisioner.engine.workers import AliveWorker
from provisioner.limits.queries import SiteLimits
from provisioner.limits.tallies import Tallies
from provisioner.mirrors.queries import mirrors_in_trouble
from provisioner.recipes.queries import (
    plans_in_trouble,
    servers_with_damage,
    verifications_in_trouble,
)
from provisioner.storage.models import FillingVolume
from provisioner.web.notices import Level
from provisioner.workspaces.models import LEASED, Workspace


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A sentence about what is wrong, and the URL of the page that shows it."""

    sentence: str
    url: str = ""
    level: Level = Level.WARNING

    @property
    def icon(self) -> str:
        return "failed" if self.level == Level.ERROR else "warning"


def troubles(
    *,
    sites: Iterable[SiteLimits],
    tallies: Tallies,
    workers: Sequence[AliveWorker],
    failed_today: int,
) -> list[Trouble]:
    """Return the current problems, except missing workers. Eight queries, and one
    more where DATABASE_URL names several hosts."""
    return [
        *_of_standby(),
        *_mails(),
        *(_of_worker(worker) for worker in workers if worker.clock_trouble),
        *_of_releases(workers),
        *(_paused(row) for row in _paused_servers()),
        *(_not_measured(site) for site in sites if site.is_stale),
        *_failed(tallies),
        *_counted(
            failed_today,
            ("operation failed in 24 hours", "operations failed in 24 hours"),
            f"{reverse('operation-list')}?state=failed",
        ),
        *_counted(
            FillingVolume.objects.count(),
            ("volume is at least 85 % full", "volumes are at least 85 % full"),
            reverse("filling-volume-list"),
        ),
        *_counted(
            mirrors_in_trouble().count(),
            ("mirror needs somebody", "mirrors need somebody"),
            reverse("mirror-list"),
        ),
        *of_sandboxes(),
        *_of_directory(),
        *_counted(
            open_findings_number(),
            ("finding of drift is open", "findings of drift are open"),
            reverse("drift"),
        ),
    ]


def of_sandboxes() -> list[Trouble]:
    """Return what sandboxes of Perforce servers found, or failed to do."""
    return [
        *_counted(
            plans_in_trouble().count(),
            ("plan of checkpoints has failed", "plans of checkpoints have failed"),
            reverse("checkpoint-list"),
        ),
        *_counted(
            verifications_in_trouble().count(),
            ("plan of verifications has failed", "plans of verifications have failed"),
            reverse("verification-list"),
        ),
        *_counted(
            drills_in_trouble().count(),
            ("disaster drill has failed", "disaster drills have failed"),
            reverse("drill-list"),
        ),
        *_counted(
            servers_with_damage(),
            (
                "Perforce server has lost or damaged files",
                "Perforce servers have lost or damaged files",
            ),
            reverse("verification-list"),
        ),
    ]


def _of_directory() -> list[Trouble]:
    sync = sync_in_trouble()
    if sync is None:
        return []
    did = "failed" if sync.state == sync.State.FAILED else "needs your approval"
    sentence = f"The directory sync {did}: {sync.message}"
    return [Trouble(sentence=sentence, url=reverse("directory-sync"))]


def _of_standby() -> list[Trouble]:
    problem = standby_trouble()
    return [Trouble(sentence=problem)] if problem else []


def _mails() -> list[Trouble]:
    """Return a problem if owners get no mail, so that leases end unnoticed."""
    if not mails_are_sent():
        return [Trouble(sentence=f"{NO_MAILS} Nobody is warned before a lease ends.")]
    living = Workspace.objects.filter(state__in=LEASED, is_pooled=False)
    without = User.objects.filter(
        email="", is_active=True, is_service=False, pk__in=living.values("owner")
    )
    return _counted(
        without.count(),
        (
            "owner of workspaces has no mail address and is not warned",
            "owners of workspaces have no mail address and are not warned",
        ),
        reverse("person-list"),
    )


def _of_worker(worker: AliveWorker) -> Trouble:
    return Trouble(sentence=f"{worker.host}: {worker.clock_trouble}", level=Level.ERROR)


def _of_releases(workers: Sequence[AliveWorker]) -> list[Trouble]:
    sentence = side_by_side(workers)
    return [Trouble(sentence=sentence)] if sentence else []


def _paused_servers() -> Iterable[SlotBudget]:
    return SlotBudget.objects.filter(paused_at__isnull=False).select_related("server")


def _paused(row: SlotBudget) -> Trouble:
    return Trouble(
        sentence=f"Perforce server {row.server} is paused: {row.paused_reason}",
        url=reverse("perforce-server-list"),
    )


def _not_measured(site: SiteLimits) -> Trouble:
    message = site.capacity.status_message
    why = f": {message}" if message else ". Nobody is refused for lack of space."
    return Trouble(
        sentence=f"Site {site.site} has not been measured lately{why}",
        url=reverse("limit-list"),
    )


def _failed(tallies: Tallies) -> list[Trouble]:
    failed_templates = sum(
        template.state == Template.State.FAILED for template in tallies.templates
    )
    failed_workspaces = sum(tally.failed for tally in tallies.by_template.values())
    return [
        *_counted(
            failed_templates,
            ("template failed to build", "templates failed to build"),
            f"{reverse('template-list')}?state=failed",
            level=Level.ERROR,
        ),
        *_counted(
            failed_workspaces,
            ("workspace has failed", "workspaces have failed"),
            f"{reverse('admin-workspace-list')}?state=failed",
        ),
    ]


def _counted(
    number: int, words: tuple[str, str], url: str, **look: Any
) -> list[Trouble]:
    if not number:
        return []
    said = words[0] if number == 1 else words[1]
    return [Trouble(sentence=f"{number:,} {said}.", url=url, **look)]
