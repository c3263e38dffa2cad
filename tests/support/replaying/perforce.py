"""Commands of a trace, given again to a Perforce server that has other contents."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace

from provisioner.gateways.errors import GatewayError
from provisioner.gateways.perforce.connection import TicketHolder, connected
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.gateways.tracing.exchanges import Exchange, PerforceExchange
from provisioner.gateways.tracing.recording import heard_by
from tests.support.replaying.shapes import differences, shape_of_records
from tests.support.replaying.stand_ins import StandIns
from tests.support.replaying.traces import Difference, Replay, Trace

# What reads or writes files of a client, which are in no trace; and signing in.
_OF_FILES = frozenset(
    {
        *(
            "add",
            "copy",
            "delete",
            "edit",
            "integrate",
            "lock",
            "merge",
            "move",
            "reconcile",
        ),
        *("reopen", "resolve", "revert", "shelve", "submit", "sync", "undo", "unlock"),
        *("unshelve",),
    }
)
_OF_SECRETS = frozenset({"login", "passwd"})
_HARMLESS = frozenset({"-n", "-k"})
_DEPOT = re.compile(r"//([^/\s]+)/")
_CHANGE = re.compile(r"(?<=[@])(\d+)\Z|^(\d+)\Z")
_MADE = re.compile(r"\b[Cc]hange (\d+)\b")
_FORM_OF_CHANGE = re.compile(r"(?m)^(Change:\s+)(\d+)")


def replay_perforce(
    trace: Trace, *, account: PerforceAccount, depot: str, into: Replay
) -> None:
    """Give the commands of a trace in their order, and note what differs.

    They are given as the account, and its depot stands for those of the trace. Left out
    is what needs files of a client, a password, or another user than the first one.
    """
    asked = {
        line: exchange
        for line, exchange in trace.exchanges.items()
        if isinstance(exchange, PerforceExchange)
    }
    names = StandIns()
    users = [exchange.user for exchange in asked.values()]
    clients = {exchange.client for exchange in asked.values()}
    for exchange in asked.values():
        for name in _depots(exchange) - clients:
            names.words[name] = depot
    names.words.update(dict.fromkeys(users[:1], account.user))
    changes: dict[str, str] = {}
    holder = TicketHolder()
    for line, exchange in asked.items():
        reason = _reason_to_leave_out(exchange, user=users[0])
        if reason:
            into.left_out[reason] += 1
            continue
        answer = _given(
            exchange, account=account, names=names, changes=changes, holder=holder
        )
        into.replayed += 1
        changes.update(_changes_made(exchange, answer))
        said = f"p4 {' '.join(exchange.command)}"
        if (what := _missing(exchange, answer)) is not None:
            into.not_comparable.append(Difference(line=line, request=said, what=what))
            continue
        for what in _differences(exchange, answer):
            into.differences.append(Difference(line=line, request=said, what=what))


def _depots(exchange: PerforceExchange) -> set[str]:
    """Return the depots of paths; a client's name can be among them."""
    found = set()
    for record in exchange.records:
        for name, value in record.items():
            if name.startswith(("depotFile", "View")) and isinstance(value, str):
                found.update(_DEPOT.findall(value)[:1])
    for line in exchange.form.splitlines():
        if line.startswith("\t//"):
            found.update(_DEPOT.findall(line)[:1])
    return found


def _reason_to_leave_out(exchange: PerforceExchange, *, user: str) -> str:
    command = exchange.command[0]
    if command in _OF_SECRETS:
        return "signing in"
    if exchange.user != user:
        return "another user"
    if exchange.is_lost:
        return "no answer in the trace"
    if command in _OF_FILES and not _HARMLESS & set(exchange.command):
        return "files of a client"
    return ""


def _given(
    exchange: PerforceExchange,
    *,
    account: PerforceAccount,
    names: StandIns,
    changes: dict[str, str],
    holder: TicketHolder,
) -> PerforceExchange:
    """Give a command and return it with what came back."""

    def renumbered(word: str) -> str:
        return _CHANGE.sub(lambda found: changes.get(found[0], found[0]), word)

    command = [renumbered(names.of(word)) for word in exchange.command]
    form = _FORM_OF_CHANGE.sub(
        lambda found: found[1] + changes.get(found[2], found[2]),
        names.of(exchange.form),
    )
    heard: list[Exchange] = []
    # What was answered is what is compared, failures too.
    with heard_by(heard.append), contextlib.suppress(GatewayError):
        client = names.of(exchange.client)
        with connected(
            replace(account, host=exchange.host), holder=holder, client=client
        ) as connection:
            connection.run(*command, text=form)
    answers = [
        each
        for each in heard
        if isinstance(each, PerforceExchange) and list(each.command) == command
    ]
    return answers[-1] if answers else replace(exchange, is_lost=True)


def _changes_made(
    there: PerforceExchange, here: PerforceExchange
) -> Iterator[tuple[str, str]]:
    """Yield numbers of changes that a command made there and here."""
    for was, is_now in zip(there.texts, here.texts, strict=False):
        yield from zip(_MADE.findall(was), _MADE.findall(is_now), strict=False)


def _missing(there: PerforceExchange, here: PerforceExchange) -> str | None:
    """Say where one of two answers has records and the other has none."""
    if there.records and not here.records:
        return "there were records, and there are none"
    if here.records and not there.records:
        return "there were no records, and there are some"
    return None


def _differences(there: PerforceExchange, here: PerforceExchange) -> Iterator[str]:
    if here.is_lost:
        yield "there is no answer"
        return
    was, is_now = (
        {(m.id, m.severity) for m in each.messages} for each in (there, here)
    )
    for number, severity in sorted(is_now - was):
        yield f"message {number} of severity {severity} was not in the trace"
    for number, severity in sorted(was - is_now):
        yield f"message {number} of severity {severity} is missing"
    yield from differences(
        shape_of_records(there.records), shape_of_records(here.records)
    )


def _messages(exchange: PerforceExchange) -> set[tuple[int, int]]:
    return {(each.id, each.severity) for each in exchange.messages}
