"""Save and test sites and Perforce servers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.sites.connections import ontap, perforce, rows
from provisioner.sites.events import asks_clients
from provisioner.sites.models import ConnectionTest, PerforceServer, Site
from provisioner.sites.replicas import require_bound_all

Place = ConnectionTest.Place


def site_save(*, by: User, site: Site) -> Site:
    """Create or change a site, after checking what would harm its workspaces.

    Earlier test results are deleted, as the settings changed.

    Raises: NotAllowed, InvalidRequest (mount options, what the fields refuse, and a
    Perforce server that cannot use the clients of the site's workspaces).
    """
    permissions.require(permissions.can_administer(by))
    before = Site.objects.filter(pk=site.pk).first()
    if before and before.perforce_server_id != site.perforce_server_id:
        require_bound_all(
            site.perforce_server,
            _clients_at([before.perforce_server], site=site),
            before=before.perforce_server,
            field="perforce_server",
        )
    _save(site, by=by)
    return site


def perforce_server_save(*, by: User, server: PerforceServer) -> PerforceServer:
    """Create or change a Perforce server, and delete its earlier test results.

    Raises: NotAllowed, InvalidRequest (what the fields refuse, and another server that
    cannot use the clients of the workspaces at this one).
    """
    permissions.require(permissions.can_administer(by))
    before = PerforceServer.objects.filter(pk=server.pk).first()
    changed = _changed(before, server) if before else []
    if before and changed:
        _clean(server)
        require_bound_all(
            server,
            _clients_at(before.with_intermediaries, site=None),
            before=before,
            field=changed[0],
        )
    _save(server, by=by)
    return server


def site_connect(*, by: User, site: Site) -> Site:
    """Save a site, then test it.

    Raises: NotAllowed, InvalidRequest.
    """
    site_save(by=by, site=site)
    site_test(by=by, site=site)
    return site


def perforce_server_connect(*, by: User, server: PerforceServer) -> PerforceServer:
    """Save a Perforce server, then test it.

    Raises: NotAllowed, InvalidRequest.
    """
    perforce_server_save(by=by, server=server)
    perforce_server_test(by=by, server=server)
    return server


def site_test(*, by: User, site: Site) -> None:
    """Test a site from this process, and ask its workers to test it.

    Takes as long as ONTAP takes to answer, a few seconds at most.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    asked_at = clocks.database_now()
    found = ontap.check_ontap(site)
    with transaction.atomic():
        rows.ask(site, by=by, asked_at=asked_at)
        rows.keep(site, Place.WEB, found)


def site_try_out(*, by: User, site: Site) -> None:
    """Ask a host to create, check and remove a small volume and its clone.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        rows.ask_for_trial(site, by=by)


def perforce_server_test(*, by: User, server: PerforceServer) -> None:
    """Test a Perforce server from this process, and ask a worker to test it.

    Takes as long as the server takes to answer, a few seconds at most.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    asked_at = clocks.database_now()
    found = perforce.check_perforce(server)
    with transaction.atomic():
        rows.ask(server, by=by, asked_at=asked_at)
        rows.keep(server, Place.WEB, found)


def _changed(before: PerforceServer, after: PerforceServer) -> list[str]:
    """Return the changed fields that say which server it is."""
    return [
        name
        for name in ("kind", "server_id", "p4port", "upstream")
        if getattr(before, name) != getattr(after, name)
    ]


def _clients_at(servers: Collection[PerforceServer], *, site: Site | None) -> set[str]:
    """Return the clients of workspaces at servers, of one site or of all."""
    answers: Any = asks_clients.send(PerforceServer, servers=servers, site=site)
    return {name for _, known in answers for name in known}


def _save(row: Site | PerforceServer, *, by: User) -> None:
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        # Two at a time could make a loop of upstreams, or a replica of a site's server.
        list(PerforceServer.objects.select_for_update().order_by("pk"))
        _clean(row)
        row.save()
        row.connection_tests.all().delete()


def _clean(row: Site | PerforceServer) -> None:
    try:
        row.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, messages[0]) from error
