"""The drift check of each site, both ways, every hour and on request.

One job checks one system of a site, in the queue of workers that reach it. Findings
stay open until their difference is gone. Repairs that cannot lose work run
automatically once a difference has been seen twice.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass

import structlog
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts import origin
from provisioner.audit_log.actions import record_event
from provisioner.drift import repairs
from provisioner.drift.actions import (
    CHECK_TASK,
    RESOLVE_TASK,
    queue_drift_checks,
)
from provisioner.drift.comparison.facts import (
    CLIENT_FILTER,
    ClientWork,
    Known,
    KnownTree,
    SeenPerforce,
    SeenStorage,
    Wanted,
    tag_of_client,
    tag_of_volume,
)
from provisioner.drift.comparison.perforce import compare_perforce
from provisioner.drift.comparison.storage import compare_storage
from provisioner.drift.models import DriftCheck, FarSide, Finding
from provisioner.drift.repairs.evidence import without_hidden_parent
from provisioner.drift.repairs.previewing import note_rows_to_be
from provisioner.drift.sweeps import known
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, NotFound
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib import clocks
from provisioner.lib.names import TAG_PREFIX
from provisioner.sites.models import Site

log = structlog.get_logger(__name__)

# Twice seen and this far apart: one check may have met something on its way.
CONFIRMED_AFTER = dt.timedelta(seconds=60)
# What each check writes of a finding.
SEEN = (
    *("external_id", "volume_uuid", "snapshot", "tag_kind", "tag"),
    *("sentence", "details", "action", "is_automatic"),
    *("workspace_id", "template_id", "mirror_id", "copy_id"),
)
# How many single objects a check asks about beyond the lists.
LOOKS_AT_MOST = 100


@app.periodic(cron="7 * * * *")
@app.task(name="check_all_sites", queue="sweeps", queueing_lock="check_all_sites")
def check_all_sites(timestamp: int) -> None:
    """Queue a drift check of every site."""
    queue_drift_checks(Site.objects.select_related("perforce_server"))


@app.task(name=CHECK_TASK)
def check_site(*, site_id: int, system: str) -> None:
    """Check one remote system of a site."""
    site = Site.objects.select_related("perforce_server").filter(pk=site_id).first()
    if site is not None:
        with origin.coming_by("drift check"):
            run_drift_check(site, system=FarSide(system))


@app.task(name=RESOLVE_TASK)
def resolve_finding(*, finding_id: int) -> None:
    """Run the repair that an administrator requested."""
    finding = (
        Finding.objects.select_related("site__perforce_server", "asked_by")
        .filter(pk=finding_id, resolved_at=None)
        .first()
    )
    if finding is not None and finding.asked_at is not None:
        asked_by = finding.asked_by
        with origin.coming_from(origin.Origin(via="drift check", actor=asked_by)):
            repairs.repair(finding, by=asked_by)


@dataclass(frozen=True, kw_only=True)
class Look:
    """The result of checking one remote system."""

    found: list[Finding]
    objects_seen: int


def run_drift_check(site: Site, *, system: FarSide) -> DriftCheck:
    """Check, save the findings, and run repairs that cannot lose work.

    If the remote system does not answer, the run records that and concludes nothing.
    """
    began_at, began = clocks.database_now(), time.monotonic()
    try:
        look = _LOOKS[system](site, began_at)
    except GatewayError as error:
        log.warning("drift_check_failed", site=site.name, **error.log_context())
        run, _ = DriftCheck.objects.update_or_create(
            site=site,
            system=system,
            defaults={"status_message": error.sentence, "asked_at": None},
        )
        return run
    keep_findings(site, system=system, found=look.found)
    _repair_what_is_safe(site, system=system)
    run, _ = DriftCheck.objects.update_or_create(
        site=site,
        system=system,
        defaults={
            "checked_at": began_at,
            "seconds": time.monotonic() - began,
            "objects_seen": look.objects_seen,
            "status_message": "",
            "asked_at": None,
        },
    )
    return run


def _check_ontap(site: Site, asof: dt.datetime) -> Look:
    """Read lists first and rows last, so that anything made meanwhile has its row."""
    ontap = registry.ontap(site)
    volumes = tuple(ontap.list_volumes(comment_prefix=TAG_PREFIX))
    tags = {tag for volume in volumes if (tag := tag_of_volume(volume))}
    seen_tags = {tag for _, tag in tags}
    missing = [
        tree
        for tree in known.of_storage(site, seen=seen_tags, asof=asof).trees
        if tree.volume is Wanted.YES and (tree.kind, tree.tag) not in tags
    ]
    untagged = {
        tree.volume_name: volume
        for tree in missing[:LOOKS_AT_MOST]
        if (volume := _without_its_tag(ontap, tree)) is not None
    }
    snapshots = {
        volume.uuid: tuple(ontap.list_snapshots(volume.uuid))
        for volume in volumes
        if (tag := tag_of_volume(volume)) is not None
        and tag[0] in ("template", "mirror")
        and volume.state == "online"
    }
    jobs = tuple(ontap.list_unfinished_jobs())
    filled = (
        _filled(ontap) if any(kind in ("mirror", "copy") for kind, _ in tags) else ()
    )
    settings = ontap.list_volume_settings(comment_prefix=TAG_PREFIX)
    rows = known.of_storage(site, seen=seen_tags, asof=asof)
    seen = SeenStorage(
        volumes=volumes,
        untagged=untagged,
        snapshots=snapshots,
        jobs=jobs,
        filled=frozenset(filled),
        settings=settings,
    )
    found = compare_storage(rows, seen)
    note_rows_to_be(found, site=site, seen=seen)
    return Look(
        found=found,
        objects_seen=len(volumes) + sum(map(len, snapshots.values())),
    )


def _filled(ontap: OntapGateway) -> list[str]:
    """Return the names of the SVM's volumes that SnapMirror fills."""
    paths = [each.destination_path for each in ontap.list_relationships()]
    return [path.partition(":")[2] for path in paths]


def _without_its_tag(ontap: OntapGateway, tree: KnownTree) -> Volume | None:
    """Return the volume with a row's uuid, else the one with its name."""
    if tree.volume_uuid:
        try:
            volume = ontap.get_volume(tree.volume_uuid)
        except NotFound:
            pass
        else:
            return without_hidden_parent(ontap, volume)
    return ontap.find_volume(tree.volume_name)


def _check_perforce(site: Site, asof: dt.datetime) -> Look:
    """List clients without naming one, which would refresh its Access date."""
    perforce = registry.perforce(site.perforce_server)
    clients = tuple(perforce.clients.find_all(name_filter=CLIENT_FILTER))
    tags = {tag[1] for client in clients if (tag := tag_of_client(client))}
    before = known.of_perforce(site, seen=tags, asof=asof)
    views = known.client_views(
        clients, known=before, perforce=perforce, at_most=LOOKS_AT_MOST
    )
    work = {
        name: ClientWork(
            opened=len(perforce.changes.list_opened(name)),
            pending=len(changes := perforce.changes.list_pending(name)),
            shelved=sum(change.is_shelved for change in changes),
        )
        for name in _clients_without_use(before, clients)[:LOOKS_AT_MOST]
    }
    rows = known.of_perforce(site, seen=tags, asof=asof)
    seen = SeenPerforce(clients=clients, work=work, views=views)
    return Look(
        found=compare_perforce(rows, seen),
        objects_seen=sum(tag_of_client(client) is not None for client in clients),
    )


_LOOKS = {
    FarSide.ONTAP: _check_ontap,
    FarSide.PERFORCE: _check_perforce,
}


def _clients_without_use(rows: Known, clients: tuple[ClientSpec, ...]) -> list[str]:
    """Return our clients that no row wants: only these are examined further."""
    return sorted(
        finding.subject
        for finding in compare_perforce(rows, SeenPerforce(clients=clients))
        if finding.kind == Finding.Kind.CLIENT_WITHOUT_ROW
    )


def keep_findings(site: Site, *, system: FarSide, found: list[Finding]) -> None:
    """Keep one open finding per difference; resolve those without one."""
    now = clocks.database_now()
    of_system = [kind for kind in Finding.Kind if kind.system is system]
    with transaction.atomic():
        open_ones = {
            (finding.kind, finding.subject): finding
            for finding in Finding.objects.select_for_update(of=("self",)).filter(
                site=site, kind__in=of_system, resolved_at=None
            )
        }
        for seen in found:
            known = open_ones.pop((seen.kind, seen.subject), None)
            if known is None:
                _keep_new(seen, site=site, now=now)
            else:
                _see_again(known, seen=seen, now=now)
        for finding in open_ones.values():
            repairs.settle(finding, resolution="The difference was gone.", by=None)


def _keep_new(finding: Finding, *, site: Site, now: dt.datetime) -> None:
    finding.site, finding.first_seen_at, finding.last_seen_at = site, now, now
    finding.save()
    record_event(
        finding.row or site,
        kind="drift_found",
        message=finding.sentence,
        data={"kind": finding.kind, "subject": finding.subject},
    )


def _see_again(known: Finding, *, seen: Finding, now: dt.datetime) -> None:
    """Update a finding; one that looks different counts as seen for the first time."""
    is_same = (known.external_id, known.action, known.is_automatic) == (
        seen.external_id,
        seen.action,
        seen.is_automatic,
    )
    times = (
        {"times_seen": known.times_seen + 1}
        if is_same
        else {"times_seen": 1, "first_seen_at": now}
    )
    fields = {name: getattr(seen, name) for name in SEEN}
    Finding.objects.filter(pk=known.pk).update(**fields, **times, last_seen_at=now)


def _repair_what_is_safe(site: Site, *, system: FarSide) -> None:
    of_system = [kind for kind in Finding.Kind if kind.system is system]
    for finding in Finding.objects.select_related("site__perforce_server").filter(
        site=site,
        kind__in=of_system,
        resolved_at=None,
        is_automatic=True,
        times_seen__gte=2,
    ):
        if finding.last_seen_at - finding.first_seen_at >= CONFIRMED_AFTER:
            repairs.repair(finding, by=None)
