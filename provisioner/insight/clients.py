"""Read the clients of Perforce servers without a use of them: no Access date moves."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable

from django.db import transaction
from django.db.models import F, Q, Sum

from provisioner.engine.loads import why_rest, why_stop
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.types import ListedClient as Listed
from provisioner.gateways.perforce.types import OpenedCounts
from provisioner.insight.models import AdviceRule, ClientListing, ListedClient, Process
from provisioner.insight.programs import LONGEST_NAME
from provisioner.lib import clocks
from provisioner.lib.names import TAG_PREFIX
from provisioner.lib.storable import as_named, storable
from provisioner.server_log.models import LogCommand, LogSum, Span
from provisioner.sites.models import PerforceServer

ANSWER_WITHIN_SECONDS = 120.0
# Of a server that has more opened, what comes later by path is not counted.
MOST_OPENED = 500_000
ROWS_AT_ONCE = 1_000
# A minute, of one server.
VIEWS_AT_ONCE = 5
VIEW_AGAIN_AFTER = dt.timedelta(days=30)
USED_WITHIN = dt.timedelta(minutes=2)
# Single commands say which sync of a day was the largest. They are stored for days.
SYNCS_OF = dt.timedelta(days=2)
SYNC_FORGOTTEN_AFTER = dt.timedelta(days=90)
DAY = dt.timedelta(days=1)
SYNCS = ("user-sync", "user-transmit", "user-update")
WHOLE_LINES_KEPT = 3

_WHOLE = re.compile(r'[+&]?//(?:[^/]+/)?\.\.\.(?= )|"[+&]?//(?:[^/]+/)?\.\.\."')


def whole_lines_of(view: Iterable[str]) -> list[str]:
    """Return the lines of a view that map a whole depot, or all of them."""
    return [line for line in view if _WHOLE.match(line)]


def why_not_now(server: PerforceServer) -> str:
    """Return why a server is not to be asked for much now, "" if it may be."""
    budget = getattr(server, "slot_budget", None)
    if budget is not None and budget.is_paused:
        return f"Paused: {budget.paused_reason}"
    return why_stop(server.pk) or why_rest(server.pk)


def read_clients(server: PerforceServer) -> None:
    """List a server's clients and opened files, and save them in place of those before.

    A view that was read stays, and so does what the log told.

    Raises: GatewayError, which is saved as the trouble; what was read before stays.
    """
    gateway = registry.hasty_perforce(server, seconds=ANSWER_WITHIN_SECONDS)
    try:
        listed = gateway.clients.all_listed()
        opened = gateway.changes.count_all_opened(most=MOST_OPENED)
    except GatewayError as error:
        ClientListing.objects.update_or_create(
            server=server, defaults={"trouble": error.sentence}
        )
        raise
    rows = [
        _row(server, client, opened.get(client.name, OpenedCounts()))
        for client in listed
        if TAG_PREFIX not in client.description
    ]
    with transaction.atomic():
        ClientListing.objects.update_or_create(
            server=server,
            defaults={
                "read_at": clocks.database_now(),
                "trouble": "",
                "opened_files": sum(each.opened for each in opened.values()),
            },
        )
        kept = {row.name for row in rows}
        known = ListedClient.objects.filter(server=server).values_list("pk", "name")
        gone = [pk for pk, name in known if name not in kept]
        ListedClient.objects.filter(pk__in=gone).delete()
        ListedClient.objects.bulk_create(
            {row.name: row for row in rows}.values(),
            batch_size=ROWS_AT_ONCE,
            update_conflicts=True,
            unique_fields=["server", "name"],
            update_fields=[
                *("owner", "host", "kind", "is_locked", "updated_at", "accessed_at"),
                *("opened_files", "locked_files"),
            ],
        )
    note_syncs(server)


def _row(server: PerforceServer, client: Listed, opened: OpenedCounts) -> ListedClient:
    return ListedClient(
        server=server,
        name=storable(client.name)[:LONGEST_NAME],
        owner=storable(client.owner),
        host=storable(client.host),
        kind="" if client.type == "writeable" else storable(client.type),
        is_locked=client.is_locked,
        updated_at=client.updated_at,
        accessed_at=client.accessed_at,
        opened_files=opened.opened,
        locked_files=opened.locked,
    )


def note_syncs(server: PerforceServer) -> None:
    """Note the largest sync of each client in the last days, by the server's log.

    Sums by day name the clients that were sent many files; commands are only
    read. What is older than 90 days is forgotten.
    """
    now = clocks.database_now()
    clients = ListedClient.objects.filter(server=server)
    clients.filter(synced_at__lt=now - SYNC_FORGOTTEN_AFTER).update(
        synced_at=None, synced_files=None
    )
    since, many = now - SYNCS_OF, AdviceRule.of(server).many_files
    sent_much = (
        LogSum.objects.filter(
            log__server=server, span=Span.DAY, by=LogSum.By.CLIENT, at__gte=since - DAY
        )
        .order_by()
        .values("name")
        .annotate(sent=Sum("files_sent"))
        .filter(sent__gte=many)
        .values("name")
    )
    for client in clients.filter(name__in=sent_much):
        largest = (
            LogCommand.objects.filter(
                log__server=server,
                client=client.name,
                started_at__gte=since,
                command__in=SYNCS,
                files_sent__gt=client.synced_files or 0,
            )
            .order_by("-files_sent")
            .first()
        )
        if largest is not None:
            clients.filter(pk=client.pk).update(
                synced_files=largest.files_sent, synced_at=largest.started_at
            )


def read_views(server: PerforceServer) -> int:
    """Read the views of a few clients that somebody used just now; return how many.

    Others' are not read, as that would move their Access dates: they come when they
    are used. A view is read again once its client was changed, or after 30 days.

    Raises: GatewayError.
    """
    now = clocks.database_now()
    used = set(
        Process.objects.filter(
            server=server, started_at__gte=now - USED_WITHIN
        ).values_list("client", flat=True)
    ) | set(
        LogCommand.objects.filter(
            log__server=server, started_at__gte=now - USED_WITHIN, started_at__lte=now
        )
        .order_by()
        .values_list("client", flat=True)
        .distinct()
    )
    is_due = (
        Q(view_read_at=None)
        | Q(view_read_at__lt=now - VIEW_AGAIN_AFTER)
        | Q(view_read_at__lt=F("updated_at"))
    )
    due = ListedClient.objects.filter(is_due, server=server, name__in=used)
    in_turn = due.order_by("view_read_at", "pk").values_list("name", flat=True)
    names = list(map(as_named, in_turn[:VIEWS_AT_ONCE]))
    if not names:
        return 0
    gateway = registry.hasty_perforce(server, seconds=ANSWER_WITHIN_SECONDS)
    views = gateway.clients.views_of_just_used(names)
    for name, view in views.items():
        whole = whole_lines_of(view)
        due.filter(name=storable(name)).update(
            view_read_at=now,
            maps_whole_depot=bool(whole),
            whole_lines=whole[:WHOLE_LINES_KEPT],
        )
    return len(views)
