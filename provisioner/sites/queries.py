"""The health of sites and Perforce servers, as last tested. No remote call."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address, ip_network

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet
from django.utils.safestring import SafeString

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.engine.workers import AliveWorker, alive_workers
from provisioner.gateways.ontap.types import Aggregate
from provisioner.lib import clocks
from provisioner.lib.rows import with_words
from provisioner.sites.connections.rows import queues_of
from provisioner.sites.models import (
    AggregateSpace,
    ConnectionCheck,
    ConnectionTest,
    HomeSite,
    PerforceServer,
    Site,
    SiteCapacity,
)
from provisioner.web.templatetags.cloneyard import count, state

Outcome = ConnectionCheck.Outcome
Place = ConnectionTest.Place

# A worker that is there begins at once; after so long, something keeps it.
SILENT_AFTER = dt.timedelta(seconds=60)
TRIAL_SILENT_AFTER = dt.timedelta(minutes=5)

TITLES = {
    "ontap_password": "Password",
    "ontap_address": "Address",
    "ontap_certificate": "Certificate",
    "ontap_sign_in": "Signing in",
    "svm": "SVM",
    "aggregate": "Aggregate",
    "data_lif": "NFS addresses",
    "flexclone": "FlexClone",
    "export_policy": "Export policy",
    "worker_clients": "Hosts of workers",
    "rights": "Rights",
    "worker_user": "Worker",
    "mount_root": "Mount root",
    "namespace": "Namespace",
    "mount_options": "Mount options",
    "rescue_root": "Rescue area",
    "sandbox": "Sandbox of commands",
    "trial_volume": "Volume and snapshot",
    "trial_clone": "Clone",
    "trial_junction": "Junction",
    "trial_seen": "Seen on the host",
    "trial_removed": "Removed",
    "perforce_password": "Password or ticket",
    "perforce_address": "Address",
    "perforce_fingerprint": "Fingerprint",
    "perforce_server": "Server",
    "perforce_sign_in": "Signing in",
    "perforce_level": "Level",
    "perforce_protections": "Protections",
    "perforce_kind": "Kind, ServerID and upstream",
    "perforce_people": "P4PORT of people",
    "perforce_position": "How far behind",
    "perforce_names": "Names and text",
    "perforce_clients": "Client types",
    "perforce_services": "What works there",
    "perforce_limits": "Limits of groups",
    "perforce_settings": "Settings of the server",
}
_AT_A_HOST = {"ontap": "ONTAP: ", "perforce": "Perforce: "}


class Health(StrEnum):
    """The outcome of tests, for programs and for pages."""

    UNKNOWN = "unknown"
    LOOKING = "looking"
    WELL = "well"
    FAILED = "failed"


_HEALTH_WORDS = {
    Health.UNKNOWN: "Not tested yet",
    Health.LOOKING: "Testing",
    Health.WELL: "Passed",
    Health.FAILED: "Failed",
}


@dataclass(frozen=True, kw_only=True)
class CheckLine:
    """One check, as pages show it."""

    name: str
    title: str
    outcome: str
    sentence: str
    advice: str

    @property
    def label(self) -> str:
        return str(Outcome(self.outcome).label)

    @property
    def has_failed(self) -> bool:
        return self.outcome == Outcome.FAILED


@dataclass(frozen=True, kw_only=True)
class PlaceReport:
    """The results of a test from one place.

    Without `checked_at` it has not run yet; `why_not` then says why, "" if it is about
    to.
    """

    place: str
    title: str
    host: str
    checked_at: dt.datetime | None
    lines: list[CheckLine]
    why_not: str
    advice: str

    @property
    def is_waiting(self) -> bool:
        return self.checked_at is None and not self.why_not

    @property
    def failures(self) -> list[CheckLine]:
        return [line for line in self.lines if line.has_failed]

    @property
    def remarks(self) -> list[CheckLine]:
        return [line for line in self.lines if line.outcome == Outcome.REMARKED]

    @property
    def has_failed(self) -> bool:
        return bool(self.why_not or self.failures)

    @property
    def is_unfolded(self) -> bool:
        """Whether its lines are shown at once: all is well of what is folded."""
        return self.has_failed or bool(self.remarks) or self.place == Place.WEB

    @property
    def tally(self) -> str:
        """How many tests failed, or that they passed and with how many remarks."""
        if self.failures:
            return count(len(self.failures), "failure", "failures")
        number = len(self.lines)
        passed = "passed" if number == 1 else f"all {number} passed"
        remarks = len(self.remarks)
        return f"{passed}, {count(remarks, 'remark', 'remarks')}" if remarks else passed


@dataclass(frozen=True, kw_only=True)
class Connection:
    """The latest tests of a site or a server, from each place."""

    about: Site | PerforceServer
    asked_at: dt.datetime | None
    reports: list[PlaceReport]

    @property
    def health(self) -> Health:
        if not self.reports:
            return Health.UNKNOWN
        if any(report.has_failed for report in self.reports):
            return Health.FAILED
        if self.is_waiting:
            return Health.LOOKING
        return Health.WELL

    @property
    def is_waiting(self) -> bool:
        """Whether a test is still to come, even if a worker must be started first."""
        return any(report.checked_at is None for report in self.reports)

    @property
    def first_failure(self) -> str:
        """The sentence that says what is wrong; "" if nothing is."""
        for report in self.reports:
            if report.why_not:
                return report.why_not
            for line in report.failures:
                return f"{line.title}: {line.sentence}"
        return ""

    @property
    def state(self) -> SafeString:
        """Its health as a word and an icon."""
        words = _HEALTH_WORDS[self.health]
        if self.health == Health.WELL and self.remarks_count:
            words += f" with {count(self.remarks_count, 'remark', 'remarks')}"
        return state(self.health.value, words)

    @property
    def remarks_count(self) -> int:
        return sum(len(report.remarks) for report in self.reports)

    @property
    def announcement(self) -> str:
        """What a screen reader announces when it changes."""
        if self.health == Health.FAILED:
            return f"Something is wrong. {self.first_failure}"
        if self.health == Health.WELL:
            return "All tests passed."
        return "Being tested." if self.reports else "Not tested yet."


@dataclass(frozen=True, kw_only=True)
class SecretSource:
    """Where a secret comes from in this process; never the secret."""

    own: str
    shared: str
    source: str
    is_set: bool
    is_unreadable: bool = False


@dataclass(frozen=True, kw_only=True)
class SiteOverview:
    """A site, its health, and its workers."""

    site: Site
    connection: Connection
    capacity: SiteCapacity | None
    hosts: list[str]
    templates: int = 0
    secret: SecretSource | None = None


@dataclass(frozen=True, kw_only=True)
class ServerOverview:
    """A Perforce server, its health, who follows it, and the sites that use it."""

    server: PerforceServer
    connection: Connection
    sites: list[Site] = field(default_factory=list)
    downstream: list[PerforceServer] = field(default_factory=list)
    secret: SecretSource | None = None


def sites_for(user: User) -> list[SiteOverview]:
    """Return all sites.

    Raises: NotAllowed.
    """
    return site_overviews(sites_matching(user).order_by("name"))


def sites_matching(user: User, *, text: str = "") -> QuerySet[Site]:
    """Return the sites that match every word of a text.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    fields = ("name", "title", "svm", "ontap_host", "perforce_server__name")
    return with_words(_sites(), text, *fields)


def site_overviews(sites: Iterable[Site]) -> list[SiteOverview]:
    """Return the health of sites from `sites_matching`."""
    workers = alive_workers()
    return [_site(site, workers=workers) for site in sites]


def find_site_overview(user: User, *, pk: int) -> SiteOverview | None:
    """Return one site with the source of its password, or None.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    site = _sites().filter(pk=pk).first()
    if site is None:
        return None
    secret = secret_source("ONTAP_PASSWORD", key=site.name)
    return _site(site, workers=alive_workers(), secret=secret)


def find_server_overview(user: User, *, pk: int) -> ServerOverview | None:
    """Return one Perforce server with the source of its password, or None.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    server = (
        PerforceServer.objects.select_related(
            *("slot_budget__paused_by", "load", "watch", "upstream", "position")
        )
        .prefetch_related("connection_tests__checks", "site_set", "downstream")
        .filter(pk=pk)
        .first()
    )
    if server is None:
        return None
    return ServerOverview(
        server=server,
        connection=connection_of(server, workers=alive_workers()),
        sites=list(server.site_set.all()),
        downstream=list(server.downstream.all()),
        secret=secret_source("P4PASSWD", key=server.name),
    )


def find_space(site: Site, *, aggregate: str) -> AggregateSpace | None:
    """Return an aggregate as last measured, None if it was not; "" is the site's."""
    name = aggregate or site.aggregate
    found = AggregateSpace.objects.filter(site=site, name=name)
    return found.select_related("site").first()


def aggregate_for_new(site: Site) -> str:
    """Return where a new volume of its own goes, as last measured.

    That is the site's own aggregate, unless the site spreads templates.
    """
    if not site.spreads_templates:
        return site.aggregate
    best = roomiest(site, site.aggregates.select_related("site").order_by("name"))
    return site.aggregate if best is None else best.name


def roomiest(site: Site, spaces: Iterable[AggregateSpace]) -> AggregateSpace | None:
    """Return the aggregate for a new volume, None if no node may have another volume.

    Of those with most room, a tenth more or less, it is the one whose node has the
    fewest volumes.
    """
    most = site.volumes_per_node
    open_ones = [s for s in spaces if most is None or (s.node_volumes or 0) < most]
    room = max((space.room_bytes for space in open_ones), default=0)
    near = [space for space in open_ones if space.room_bytes * 10 >= room * 9]
    return min(
        near, key=lambda each: (each.node_volumes or 0, -each.room_bytes), default=None
    )


def spaces_of(
    site: Site, aggregates: Collection[Aggregate], *, at: dt.datetime
) -> list[AggregateSpace]:
    """Return the unsaved space of what a site's SVM may use, as ONTAP says it at `at`.

    How far volumes may grow there is left out.
    """
    of_node = Counter[str]()
    for each in aggregates:
        of_node[each.node] += each.volumes or 0
    return [
        AggregateSpace(
            site=site,
            name=each.name,
            node=each.node,
            size_bytes=each.size_bytes,
            available_bytes=each.available_bytes,
            node_volumes=None if each.volumes is None else of_node[each.node],
            measured_at=at,
        )
        for each in aggregates
        if each.is_assigned
    ]


def same_installation(a: PerforceServer, b: PerforceServer) -> bool:
    """Return whether two servers have the same commit server at their root."""
    roots = installations()
    return roots[a.pk] == roots[b.pk]


def installations() -> dict[int, int]:
    """Return the id of the commit server of every Perforce server, by its id.

    One query: servers are few.
    """
    upstreams = dict(PerforceServer.objects.values_list("pk", "upstream_id"))

    def root(pk: int) -> int:
        above = upstreams[pk]
        return pk if above is None else root(above)

    return {pk: root(pk) for pk in upstreams}


def server_with_id(server_id: str, *, near: PerforceServer) -> PerforceServer:
    """Return the server of an installation with a ServerID.

    The one given, if none has it or the ServerID is "".
    """
    if not server_id or server_id == near.server_id:
        return near
    roots = installations()
    named = PerforceServer.objects.filter(server_id=server_id).order_by("kind", "pk")
    return next((s for s in named if roots[s.pk] == roots[near.pk]), near)


def connection_of(
    about: Site | PerforceServer, *, workers: Iterable[AliveWorker]
) -> Connection:
    """Return the latest tests of a site or server, prefetched or not."""
    tests = {test.place: test for test in about.connection_tests.all()}
    alive = list(workers)
    return Connection(
        about=about,
        asked_at=max((test.asked_at for test in tests.values()), default=None),
        reports=[
            _report(tests[place], about=about, workers=alive)
            for place in Place
            if place in tests
        ],
    )


def secret_source(variable: str, *, key: str) -> SecretSource:
    """Return where a secret comes from, and whether it is set for this process."""
    own, shared = settings.SITE_SECRET_NAMES(variable, key=key)
    try:
        source = settings.SITE_SECRET_SOURCE(variable, key=key)
        is_set = bool(settings.SITE_SECRET(variable, key=key))
    except (OSError, UnicodeDecodeError):
        return SecretSource(
            own=own, shared=shared, source="", is_set=False, is_unreadable=True
        )
    return SecretSource(own=own, shared=shared, source=source or own, is_set=is_set)


def own_variable(variable: str, *, key: str) -> str:
    """Return the environment variable for the secret of one site or server."""
    return str(settings.SITE_SECRET_NAMES(variable, key=key)[0])


def _sites() -> QuerySet[Site]:
    return (
        Site.objects.select_related("perforce_server", "capacity")
        .prefetch_related("connection_tests__checks")
        .annotate(templates_count=Count("templates", distinct=True))
        .order_by("name")
    )


def _site(
    site: Site, *, workers: list[AliveWorker], secret: SecretSource | None = None
) -> SiteOverview:
    serving = [worker.host for worker in workers if worker.serves(site.host_queue)]
    return SiteOverview(
        site=site,
        connection=connection_of(site, workers=workers),
        capacity=getattr(site, "capacity", None),
        hosts=sorted(set(serving)),
        templates=getattr(site, "templates_count", 0),
        secret=secret,
    )


def _report(
    test: ConnectionTest,
    *,
    about: Site | PerforceServer,
    workers: list[AliveWorker],
) -> PlaceReport:
    why_not, advice = _why_not(test, about=about, workers=workers)
    return PlaceReport(
        place=test.place,
        title=Place(test.place).label,
        host=test.host,
        checked_at=test.checked_at,
        lines=[_line(check, place=test.place) for check in test.checks.all()],
        why_not=why_not,
        advice=advice,
    )


def _why_not(
    test: ConnectionTest, *, about: Site | PerforceServer, workers: list[AliveWorker]
) -> tuple[str, str]:
    """Return why no test runs from a place, and what to do; "" if one does."""
    queue = queues_of(about).get(test.place, "")
    if test.checked_at is not None or not queue:
        return "", ""
    if not any(worker.serves(queue) for worker in workers):
        where = (
            "On a host that mounts the namespace, as root"
            if test.place in (Place.HOST, Place.TRIAL)
            else "On any machine that reaches ONTAP and Perforce"
        )
        return (
            f"No running worker serves the queue {queue}.",
            f"{where}: python manage.py worker --queues {queue}",
        )
    is_trial = test.place == Place.TRIAL
    patience = TRIAL_SILENT_AFTER if is_trial else SILENT_AFTER
    if clocks.database_now() - test.asked_at > patience:
        return (
            f"A worker serves the queue {queue}, but has not tested it yet.",
            "It may be busy. See the overview, then test again.",
        )
    return "", ""


def _line(check: ConnectionCheck, *, place: str) -> CheckLine:
    title = TITLES.get(check.name, check.name)
    if place == Place.HOST:
        title = _AT_A_HOST.get(check.name.partition("_")[0], "") + title.lower()
    at = f"On the host {check.about_host}: " if check.about_host else ""
    return CheckLine(
        name=check.name,
        title=title[:1].upper() + title[1:],
        outcome=check.outcome,
        sentence=at + check.sentence,
        advice=check.advice,
    )


def sites_of_address(address: str) -> list[tuple[Site, str]]:
    """Return the sites whose networks have an IP address, each with the network.

    The smallest network comes first.
    """
    ip = ip_address(address)
    ip = getattr(ip, "ipv4_mapped", None) or ip
    sites = Site.objects.exclude(networks=[]).select_related("perforce_server")
    found = [
        (network, site)
        for site in sites.order_by("name")
        for network in map(ip_network, site.networks)
        if ip in network
    ]
    found.sort(key=lambda each: -each[0].prefixlen)
    return [(site, str(network)) for network, site in found]


def home_sites_of(person: User) -> list[Site]:
    """Return a person's home site and that of their team, those that are chosen."""
    chosen = HomeSite.objects.filter(
        Q(person=person) | Q(team=person.team_id, team__isnull=False)
    ).order_by(F("person").asc(nulls_last=True))
    ids = list(chosen.values_list("site", flat=True))
    if not ids:
        return []
    sites = Site.objects.select_related("perforce_server").in_bulk(ids)
    return [sites[pk] for pk in ids]
