"""What to advise about the clients of Perforce servers, with the evidence for it.

Each finding is a condition on rows, so that lists filter and count by it, and a
sentence about one row.
"""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from urllib.parse import urlencode

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.insight.clients import MOST_OPENED
from provisioner.insight.models import AdviceRule, ListedClient
from provisioner.insight.queries import (
    listed_clients_visible_to,
    servers_with_clients,
)
from provisioner.lib import clocks
from provisioner.lib.rows import with_words

_GUIDE = "P4 Server Administration Documentation"
# Their have lists are in files of their own. Source: p4 help client.
_APART = ("readonly", "partitioned", "partitioned-jnl")
# Beyond the bound, one that has none may have files opened: it must not be deleted.
_ALL_COUNTED = ~Q(server__client_listing__opened_files__gte=MOST_OPENED)
SEARCHED = ("name", "owner", "host")
# That the list of commands offers.
_LONGEST_DAYS = "90"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Advice about one client: what was seen, and what to do."""

    code: str
    title: str
    saw: str
    advice: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of advice. `condition` says which clients of servers with a rule get it.

    Times are compared with `now`; `saw` says of one client why.
    """

    code: str
    title: str
    condition: Callable[[AdviceRule, dt.datetime], Q]
    saw: Callable[[ListedClient], str]
    advice: str
    source: str


@dataclass(frozen=True, kw_only=True)
class AdvisedClient:
    """A client with what is advised about it."""

    client: ListedClient
    findings: list[Finding]

    @property
    def pk(self) -> int:
        return self.client.pk

    @property
    def commands(self) -> str:
        """The address of what it did by the server's log; "" where there is none."""
        return self._rows(days=_LONGEST_DAYS) if self._has_log else ""

    @property
    def largest_sync(self) -> str:
        """The address of its largest sync, "" if none is known."""
        began = self.client.synced_at
        if began is None:
            return ""
        until = began + dt.timedelta(seconds=1)
        return self._rows(since=began.isoformat(), until=until.isoformat())

    @property
    def _has_log(self) -> bool:
        return hasattr(self.client.server, "log")

    def _rows(self, **times: str) -> str:
        asked = {"server": self.client.server.name, "client": self.client.name, **times}
        return f"{reverse('server-command-list')}?{urlencode(asked)}"


def _is_unused(rule: AdviceRule, now: dt.datetime) -> Q:
    return Q(accessed_at__lt=now - dt.timedelta(days=rule.unused_days))


def _whole(client: ListedClient) -> str:
    return f"Its view maps {', '.join(client.whole_lines)}."


def _large(client: ListedClient) -> str:
    assert client.synced_at is not None
    return (
        f"One sync sent {client.synced_files:,} files on "
        f"{client.synced_at:%-d %b %Y}, by the server's log."
    )


def _last_used(client: ListedClient) -> str:
    assert client.accessed_at is not None
    return f"Last used on {client.accessed_at:%-d %b %Y}"


def _holding(client: ListedClient) -> str:
    files = "file" if client.opened_files == 1 else "files"
    return (
        f"{_last_used(client)}. It has {client.opened_files:,} opened {files}, "
        f"{client.locked_files:,} of them locked or exclusive."
    )


def _keeping(client: ListedClient) -> str:
    return (
        f"{_last_used(client)}. What it has is still in db.have. How much is not "
        "asked, as that would be a use of it."
    )


KINDS = (
    Kind(
        code="whole-depot",
        title="Maps a whole depot",
        condition=lambda rule, now: Q(maps_whole_depot=True),
        saw=_whole,
        advice="Ask its owner for a tight view: the directories that are worked on. "
        "That prevents accidental syncs of the entire depot.",
        source=f"{_GUIDE}, Using tight views; RIM limited client specs",
    ),
    Kind(
        code="large-sync",
        title="Syncs very much",
        condition=lambda rule, now: Q(synced_files__gte=rule.many_files),
        saw=_large,
        advice="Ask its owner for a tight view, or for a workspace of Cloneyard: its "
        "files are there already. MaxResults of a group bounds such syncs.",
        source=f"{_GUIDE}, Using tight views and MaxResults",
    ),
    Kind(
        code="unused-opened",
        title="Unused, with opened files",
        condition=lambda rule, now: _is_unused(rule, now) & Q(opened_files__gt=0),
        saw=_holding,
        advice="Ask its owner to shelve what is wanted. Then p4 revert -k -C CLIENT "
        "//... frees the files for others.",
        source="p4 help revert, p4 help lock",
    ),
    Kind(
        code="unused-have-list",
        title="Unused, with a have list",
        condition=lambda rule, now: (
            _is_unused(rule, now)
            & Q(opened_files=0)
            & _ALL_COUNTED
            & ~Q(kind__in=_APART)
        ),
        saw=_keeping,
        advice="Ask its owner. Then unload it (p4 unload -f -c CLIENT) or delete it: "
        "every sync reads and writes db.have.",
        source=f"{_GUIDE}, Unload infrequently-used metadata; p4 help unload",
    ),
)


def advised_clients(
    reader: User, /, *, text: str = "", advice: str = "", **criteria: Any
) -> QuerySet[ListedClient]:
    """Return the clients that get advice, of one kind if it is given.

    Each row says by `gets_CODE` (with underscores) which it gets. Two queries.
    """
    clients = with_words(listed_clients_visible_to(reader), text, *SEARCHED)
    conditions = _conditions(now=clocks.database_now())
    wanted = conditions[advice] if advice else reduce(or_, conditions.values())
    return clients.filter(wanted, **criteria).annotate(
        **{
            _column(code): ExpressionWrapper(condition, BooleanField())
            for code, condition in conditions.items()
        }
    )


def _column(code: str) -> str:
    return f"gets_{code.replace('-', '_')}"


def _conditions(*, now: dt.datetime) -> dict[str, Q]:
    """Return which clients get each kind of advice, by the rules of their servers."""
    rules = [AdviceRule.of(server) for server in servers_with_clients()]
    return {
        kind.code: reduce(
            or_,
            (Q(server=rule.server) & kind.condition(rule, now) for rule in rules),
            Q(pk__in=[]),
        )
        for kind in KINDS
    }


def findings_of(client: ListedClient) -> list[Finding]:
    """Return what is advised about a row of `advised_clients`."""
    return [
        Finding(
            code=kind.code,
            title=kind.title,
            saw=kind.saw(client),
            advice=kind.advice.replace("CLIENT", shlex.quote(client.name)),
            source=kind.source,
        )
        for kind in KINDS
        if getattr(client, _column(kind.code))
    ]


def with_findings(
    reader: User, clients: Iterable[ListedClient]
) -> Sequence[AdvisedClient]:
    """Return clients with what is advised about each. No query."""
    return [
        AdvisedClient(client=client, findings=findings_of(client)) for client in clients
    ]
