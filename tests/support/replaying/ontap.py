"""Requests of a trace, sent again to an ONTAP that has other names and uuids."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.gateways.errors import GatewayError
from provisioner.gateways.ontap.connection import OntapConnection
from provisioner.gateways.ontap.types import OntapAccount
from provisioner.gateways.tracing.exchanges import Exchange, OntapExchange
from provisioner.gateways.tracing.recording import heard_by
from tests.support.replaying.shapes import differences, shape_of_json
from tests.support.replaying.stand_ins import StandIns
from tests.support.replaying.traces import Difference, Replay, Trace

_JOBS = "/cluster/jobs/"
_ENDED = ("success", "failure", "cancelled", "expired")
_JOB_SECONDS = 60.0
_MADE_BYTES = 64 << 20


def replay_ontap(
    trace: Trace, *, account: OntapAccount, aggregate: str, into: Replay
) -> None:
    """Send the requests of a trace in their order, and note what differs.

    The SVM and the aggregates of the trace are those of the account and `aggregate`.
    Volumes and snapshots that the trace clones and does not make are made first, empty.
    What the trace leaves behind stays.

    Raises: GatewayError (what has to be there first cannot be made).
    """
    asked = {
        line: exchange
        for line, exchange in trace.exchanges.items()
        if isinstance(exchange, OntapExchange)
    }
    connection = OntapConnection(account, job_limit_seconds=_JOB_SECONDS)
    names = StandIns()
    for exchange in asked.values():
        for place in (exchange.query, exchange.sent, exchange.body):
            for field, name in _names(place):
                if field.endswith("svm"):
                    names.words[name] = account.svm
                elif field.endswith(("aggregate", "aggregates")):
                    names.words[name] = aggregate
    try:
        _prepare(list(asked.values()), connection, account=account, aggregate=aggregate)
        for line, exchange in asked.items():
            _replay(line, exchange, names=names, connection=connection, into=into)
    finally:
        connection.close()


def _names(value: Any, *, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield names in a body or query, with the field of what is named."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            of, _, last = f"{field}.{key}".rpartition(".")
            if last == "name" and isinstance(item, str):
                yield of, item
            else:
                yield from _names(item, field=f"{field}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _names(item, field=field)


def _prepare(
    asked: list[OntapExchange],
    connection: OntapConnection,
    *,
    account: OntapAccount,
    aggregate: str,
) -> None:
    """Make what is cloned in the trace and not made in it."""
    made: set[str] = set()
    for exchange in asked:
        sent = exchange.sent or {}
        if exchange.method != "POST" or exchange.path != "/storage/volumes":
            continue
        clone = sent.get("clone", {})
        parent = clone.get("parent_volume", {}).get("name")
        if parent and parent not in made:
            made.add(parent)
            _make(
                parent,
                snapshot=clone.get("parent_snapshot", {}).get("name", ""),
                connection=connection,
                account=account,
                aggregate=aggregate,
            )
        made.add(sent.get("name", ""))


def _make(
    name: str,
    *,
    snapshot: str,
    connection: OntapConnection,
    account: OntapAccount,
    aggregate: str,
) -> None:
    connection.write(
        "POST",
        "/storage/volumes",
        body={
            "name": name,
            "svm": {"name": account.svm},
            "aggregates": [{"name": aggregate}],
            "size": _MADE_BYTES,
        },
        ontap_job_started=lambda uuid: None,
    )
    query = {"name": name, "svm.name": account.svm}
    [volume] = connection.get_records("/storage/volumes", query=query)
    if snapshot:
        connection.write(
            "POST",
            f"/storage/volumes/{volume['uuid']}/snapshots",
            body={"name": snapshot},
            ontap_job_started=lambda uuid: None,
        )


def _replay(
    line: int,
    exchange: OntapExchange,
    *,
    names: StandIns,
    connection: OntapConnection,
    into: Replay,
) -> None:
    is_job = exchange.path.startswith(_JOBS)
    body = exchange.body or {}
    if exchange.status == 0:
        into.left_out["no answer in the trace"] += 1
        return
    if is_job and body.get("state") not in (*_ENDED, None):
        into.left_out["a job that had not ended"] += 1
        return
    request = replace(
        exchange,
        path=names.path(exchange.path),
        query=names.of(exchange.query),
        sent=names.of(exchange.sent),
    )
    answer = _sent(request, connection=connection)
    limit = time.monotonic() + _JOB_SECONDS
    while is_job and not _has_ended(answer) and time.monotonic() < limit:
        time.sleep(0.05)
        answer = _sent(request, connection=connection)
    into.replayed += 1
    names.learn(body, answer.body or {})
    said = f"{exchange.method} {exchange.path}"
    for what in _differences(exchange, answer):
        into.differences.append(Difference(line=line, request=said, what=what))
    missing = _missing_records(exchange, answer)
    if missing is not None:
        into.not_comparable.append(Difference(line=line, request=said, what=missing))


def _has_ended(answer: OntapExchange) -> bool:
    return (answer.body or {}).get("state") in (*_ENDED, None)


def _sent(request: OntapExchange, *, connection: OntapConnection) -> OntapExchange:
    """Send a request and return it with what came back."""
    heard: list[Exchange] = []
    with heard_by(heard.append):
        try:
            if request.method == "GET":
                connection.get(request.path, query=request.query)
            else:
                connection.write_at_once(
                    request.method,
                    request.path,
                    query=request.query,
                    body=request.sent,
                )
        except GatewayError:
            pass  # what was answered is what is compared
    return next(each for each in reversed(heard) if isinstance(each, OntapExchange))


def _differences(there: OntapExchange, here: OntapExchange) -> Iterator[str]:
    if there.status != here.status:
        yield f"the status is {here.status or 'missing'}, and was {there.status}"
        return
    codes = [_code(each) for each in (there, here)]
    if codes[0] != codes[1]:
        yield f"the code is {codes[1] or 'missing'}, and was {codes[0] or 'missing'}"
    elif _missing_records(there, here) is None:
        yield from differences(shape_of_json(there.body), shape_of_json(here.body))


def _code(exchange: OntapExchange) -> str:
    """Return the code of an error of a request, or of a job."""
    error = (exchange.body or {}).get("error") or {}
    return str(error.get("code", ""))


def _missing_records(there: OntapExchange, here: OntapExchange) -> str | None:
    """Say where one of two lists has records and the other has none."""
    lists = [(each.body or {}).get("records") for each in (there, here)]
    if lists[0] and not lists[1]:
        return "there were records, and there are none"
    if lists[1] and not lists[0]:
        return "there were no records, and there are some"
    return None
