"""Wait for the server that a rule chose, before anything is made there."""

from __future__ import annotations

import datetime as dt

from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Step
from provisioner.engine.step_run import StepRun
from provisioner.gateways.errors import Unreachable
from provisioner.lib import clocks
from provisioner.routing.models import LONGEST_REASON, Routed
from provisioner.sites.models import WhenBehind
from provisioner.sites.replicas import behind, stays_behind


def ensure_routed(
    run: StepRun, row: Routed, *, change: int, has_client: bool = False
) -> None:
    """Ensure that the server of a routed row has a change; else use its site's.

    Call it before the first write at the server. The rule says how long to wait, and
    what follows; once it is gone, the site's server is used. A row that `has_client`
    there stays. A server that does not answer counts as behind.

    Raises: Busy (try again), StepRefused (waited long enough), GatewayError.
    """
    server, rule = row.routed_to, row.routing_rule
    began_at = run.step.first_started_at
    if server is None:
        return
    assert began_at is not None
    if rule is not None:
        within = rule.catch_up_seconds
    else:
        within = server.catch_up_seconds if has_client else 0
    goes_back = rule is None or rule.when_behind == WhenBehind.UPSTREAM
    can_go_back = goes_back and not has_client
    try:
        position = behind(server, change=change, since=began_at, within_seconds=within)
    except Unreachable as error:
        if not can_go_back or not _is_over(began_at, seconds=within):
            raise
        _use_sites_server(run, row, because=f"{server} did not answer: {error}")
        return
    if position is None:
        return
    if not can_go_back:
        raise stays_behind(position, change=change, within_seconds=within)
    _use_sites_server(
        run, row, because=f"{server} did not have change {change} within {within} s."
    )


def _is_over(began_at: dt.datetime, *, seconds: int) -> bool:
    return (clocks.database_now() - began_at).total_seconds() >= seconds


def _use_sites_server(run: StepRun, row: Routed, *, because: str) -> None:
    """Send a row's commands to its site's server, from this step on."""
    instead = row.site.perforce_server
    sentence = f"{because} {instead} is used instead."
    with run.writing():
        type(row)._default_manager.filter(pk=row.pk).update(
            routed_to=None, routed_because=sentence[:LONGEST_REASON]
        )
        run.operation.steps.filter(
            state=Step.State.WAITING, perforce_server__isnull=False
        ).update(perforce_server=instead)
        record_event(row, kind="routed_to_site", message=sentence)
    row.routed_to = None
    run.progress(sentence)
