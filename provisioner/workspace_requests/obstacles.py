"""Obstacles to a workspace of a template, shown before anybody requests it.

The rules are those of the request itself: limits, pauses and slots of Perforce servers,
and the state of the site.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.catalog.obstacles import Obstacle
from provisioner.engine.waits import Wait, waits_of_new
from provisioner.engine.workers import alive_workers
from provisioner.lib.limits import Limit, LimitReached, refusal_of
from provisioner.lib.prepared import Prepared, among
from provisioner.lib.times import largest_unit
from provisioner.limits.admission import limits_of_token
from provisioner.limits.prospects import refusals_of
from provisioner.mirrors.queries import sites_with_mirrors
from provisioner.routing.kinds import Purpose
from provisioner.routing.queries import routes_for
from provisioner.sites.availability import why_down
from provisioner.sites.models import Site
from provisioner.workspace_requests.claim import with_ready_member

_SITES = Prepared(
    lambda ids: Site.objects.select_related(
        *("capacity", "perforce_server__slot_budget", "perforce_server__load")
    ).filter(among("pk", ids)),
)


def obstacles_to(
    by: User,
    snapshots: Collection[Snapshot],
    *,
    quotas: Sequence[Limit],
    sites: Mapping[int, Site],
) -> dict[int, Obstacle]:
    """Return the obstacle to a workspace of each snapshot, by the snapshot's id.

    Snapshots without an obstacle are left out. The snapshots have their templates
    loaded. `quotas` are those of the person. `sites` are where it is cloned, by
    snapshot id, if not at the template's site. A constant number of queries.
    """
    if not snapshots:
        return {}
    of_person = refusal_of([*limits_of_token(by), *quotas])
    if of_person is not None:
        full = _refused(of_person, button="Quota is full")
        return {snapshot.pk: full for snapshot in snapshots}
    site_ids = {
        each.pk: sites[each.pk].pk if each.pk in sites else each.template.site_id
        for each in snapshots
    }
    loaded = _loaded(site_ids.values())
    places = {pk: loaded[site_id] for pk, site_id in site_ids.items()}
    of_place = dict(_of_places(snapshots, places, by=by))
    ready = with_ready_member(of_place, places=places, by=by)
    return {
        snapshot.pk: obstacle
        for snapshot, obstacle in of_place.items()
        if snapshot.pk not in ready
    }


def _loaded(site_ids: Iterable[int]) -> dict[int, Site]:
    """Return the sites by id; the large site rows are read once."""
    return {site.pk: site for site in _SITES.rows([*set(site_ids)])}


def _of_places(
    snapshots: Collection[Snapshot], places: Mapping[int, Site], *, by: User
) -> Iterator[tuple[Snapshot, Obstacle]]:
    """Yield the obstacles at each snapshot's place.

    They hold for everybody whose work rules send to the same Perforce server there.
    """
    measured = {site: getattr(site, "capacity", None) for site in places.values()}
    refusals = refusals_of(snapshots, places=places, measured=measured)
    routes = routes_for(measured, purpose=Purpose.DEVELOPMENT, owner=by)
    waits = waits_of_new({route.server for route in routes.values()})
    workers = alive_workers()
    down = {
        site.pk: why_down(site, capacity, workers=workers)
        for site, capacity in measured.items()
    }
    without_site = [each for each in snapshots if down[places[each.pk].pk]]
    elsewhere = sites_with_mirrors(each.template_id for each in without_site)
    for snapshot in snapshots:
        site = places[snapshot.pk]
        wait, refusal = waits.get(routes[site.pk].server.pk), refusals.get(snapshot.pk)
        obstacle = (
            (refusal and _refused(refusal, button="No room left"))
            or _paused(wait)
            or _down(
                down[site.pk],
                others=elsewhere.get(snapshot.template_id, set()) - {str(site)},
            )
            or _no_slot(wait)
        )
        if obstacle is not None:
            yield snapshot, obstacle


def _refused(refusal: LimitReached, *, button: str) -> Obstacle:
    return Obstacle(sentence=refusal.sentence, button=button, refuses=True)


def _paused(wait: Wait | None) -> Obstacle | None:
    if wait is None or not wait.is_paused:
        return None
    return Obstacle(
        sentence=wait.sentence, button="Request: server is paused", is_pause=True
    )


def _down(why: str, *, others: set[str]) -> Obstacle | None:
    if not why:
        return None
    sentence = f"{why} Requests wait until it works again."
    if others:
        names = ", ".join(sorted(others))
        sentence += f" With options you can get a workspace at {names}."
    return Obstacle(sentence=sentence, button="Request: site is down")


def _no_slot(wait: Wait | None) -> Obstacle | None:
    if wait is None:
        return None
    since = ""
    if wait.since is not None:
        seconds = (timezone.now() - wait.since).total_seconds()
        since = f" for {largest_unit(seconds)}"
    before = f": {wait.before:,} before you" if wait.before else ""
    return Obstacle(
        sentence=f"No slot at the Perforce server {wait.server}{since}{before}.",
        button="Request: waits for a slot",
    )
