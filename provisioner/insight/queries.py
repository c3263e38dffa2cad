"""Processes of Perforce servers, requests to end some, and how servers are set up."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.insight.models import (
    ListedClient,
    Process,
    ProcessEnding,
    ProcessReading,
    ProgramUse,
    ServerConfiguration,
)
from provisioner.lib.releases import numbers_of
from provisioner.lib.rows import with_words
from provisioner.sites.models import PerforceServer, ServerKind

SHOWN_FOR = dt.timedelta(minutes=30)
_PASSING_ON = (ServerKind.PROXY, ServerKind.BROKER)
SEARCHED = ("user", "client", "host", "program", "command", "arguments")


def processes_visible_to(user: User) -> QuerySet[Process]:
    """Return all processes to administrators, none to others."""
    processes = Process.objects.select_related("server")
    return processes if permissions.can_administer(user) else processes.none()


def processes_matching(
    reader: User, /, *, text: str = "", at_least: int | str = 0, **criteria: Any
) -> QuerySet[Process]:
    """Return the processes with all words, begun `at_least` so many seconds ago."""
    processes = with_words(processes_visible_to(reader), text, *SEARCHED)
    if at_least:
        began = Now() - dt.timedelta(seconds=int(at_least))
        processes = processes.filter(started_at__lte=began)
    return processes.filter(**criteria)


def program_uses_visible_to(user: User) -> QuerySet[ProgramUse]:
    """Return all uses of programs to administrators, none to others."""
    uses = ProgramUse.objects.select_related("server")
    return uses if permissions.can_administer(user) else uses.none()


def program_uses_matching(
    reader: User, /, *, text: str = "", older_than: str = "", **criteria: Any
) -> QuerySet[ProgramUse]:
    """Return the uses with all words, of releases older than that, if one is given.

    What names none is left out then.
    """
    words = ("program", "release", "user", "host")
    uses = with_words(program_uses_visible_to(reader), text, *words)
    if older_than:
        uses = uses.filter(release__numbers__lt=numbers_of(older_than)).exclude(
            release=""
        )
    return uses.filter(**criteria)


def readings() -> QuerySet[ProcessReading]:
    """Return the last reading of each server."""
    return ProcessReading.objects.select_related("server").order_by("server__name")


def servers_with_orphan_rules() -> QuerySet[PerforceServer]:
    """Return the servers that have processes of their own, with rule and reading.

    A proxy or broker has none: it passes the question on.
    """
    servers = PerforceServer.objects.exclude(kind__in=_PASSING_ON).order_by("name")
    return servers.select_related("orphan_rule", "process_reading")


def servers_with_programs() -> QuerySet[PerforceServer]:
    """Return the servers that see programs, with the releases that they should have.

    A proxy or broker has none of its own: it passes commands on.
    """
    servers = PerforceServer.objects.exclude(kind__in=_PASSING_ON).order_by("name")
    return servers.prefetch_related("program_releases")


def servers_with_clients() -> QuerySet[PerforceServer]:
    """Return the servers whose clients are listed, with rule, listing and numbers.

    An edge server has its own opened files; other replicas list those of the server
    that they follow.
    """
    kinds = (ServerKind.COMMIT, ServerKind.EDGE)
    servers = PerforceServer.objects.filter(kind__in=kinds).order_by("name")
    return servers.select_related("advice_rule", "client_listing", "configuration")


def with_client_counts(servers: QuerySet[PerforceServer]) -> QuerySet[PerforceServer]:
    """Add how many clients each has, and of how many the view is known."""
    is_known = Q(listed_clients__view_read_at__isnull=False)
    return servers.annotate(
        clients=Count("listed_clients"),
        views=Count("listed_clients", filter=is_known),
    )


def servers_to_list(*, older_than: dt.timedelta) -> QuerySet[PerforceServer]:
    """Return servers whose clients were not listed since then, or in vain."""
    is_fresh = Q(
        client_listing__read_at__gte=Now() - older_than, client_listing__trouble=""
    )
    return servers_with_clients().exclude(is_fresh)


def listed_clients_visible_to(user: User) -> QuerySet[ListedClient]:
    """Return all listed clients to administrators, none to others."""
    clients = ListedClient.objects.select_related("server__advice_rule", "server__log")
    return clients if permissions.can_administer(user) else clients.none()


def recent_endings() -> QuerySet[ProcessEnding]:
    """Return requests that are open or were made in the last half hour."""
    is_open = Q(state=ProcessEnding.State.REQUESTED)
    endings = ProcessEnding.objects.filter(
        is_open | Q(requested_at__gte=Now() - SHOWN_FOR)
    )
    return endings.select_related("server", "requested_by")


def servers_with_configurations() -> QuerySet[PerforceServer]:
    """Return the servers that have a configuration.

    A proxy or broker has none of its own: it passes the question on.
    """
    return PerforceServer.objects.exclude(kind__in=_PASSING_ON)


def servers_to_read(*, older_than: dt.timedelta) -> QuerySet[PerforceServer]:
    """Return servers whose configuration is not known, or was read before that."""
    is_fresh = Q(
        configuration__read_at__gte=Now() - older_than, configuration__trouble=""
    )
    return servers_with_configurations().exclude(is_fresh)


def configurations_visible_to(user: User) -> QuerySet[ServerConfiguration]:
    """Return all to administrators, none to others; with settings and filesystems."""
    found = ServerConfiguration.objects.select_related("server__advice_rule")
    found = found.order_by("server__name")
    if not permissions.can_administer(user):
        return found.none()
    return found.prefetch_related("settings", "filesystems")
