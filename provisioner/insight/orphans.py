"""Which processes of a Perforce server count as orphans: old, and nobody's any more."""

from __future__ import annotations

import datetime as dt

from provisioner.gateways.hosts.presence import gone_hosts
from provisioner.gateways.perforce.connection import is_ours
from provisioner.insight.models import OrphanRule, Process
from provisioner.lib import clocks
from provisioner.sites.models import PerforceServer

HOSTS_AT_MOST = 50
_STATES = (Process.State.RUNNING, Process.State.PAUSED, Process.State.IDLE)


def rule_of(server: PerforceServer) -> OrphanRule:
    """Return a server's rule; one that has none gets the usual one, unsaved."""
    rule: OrphanRule | None = getattr(server, "orphan_rule", None)
    return rule if rule is not None else OrphanRule(server=server)


def is_old_enough(process: Process, rule: OrphanRule, *, now: dt.datetime) -> bool:
    """Return whether a process is one that the rule is about, by state and age.

    Never one of the server itself, nor one of ours.
    """
    our_user = rule.server.p4user
    if process.is_of_the_server or is_ours(
        process.user, process.program, our_user=our_user
    ):
        return False
    if process.state not in _STATES:
        return False
    is_idle = process.state == Process.State.IDLE
    hours = rule.idle_hours if is_idle else rule.command_hours
    return hours is not None and now - process.started_at >= dt.timedelta(hours=hours)


def is_orphan(process: Process, rule: OrphanRule, *, now: dt.datetime) -> bool:
    """Return whether a process counts as an orphan by a rule."""
    if rule.only_gone_hosts and not process.is_of_gone_host:
        return False
    return is_old_enough(process, rule, now=now)


def orphans_of(rule: OrphanRule) -> list[Process]:
    """Return the orphans of a server as last read, oldest first."""
    now = clocks.database_now()
    processes = rule.server.processes.order_by("started_at", "pk")
    return [process for process in processes if is_orphan(process, rule, now=now)]


def find_gone_hosts(server: PerforceServer) -> None:
    """Note which hosts of old processes are gone, of fifty hosts at most.

    Where the rule does not ask for it none is noted, and the network is not asked.
    """
    now, rule = clocks.database_now(), rule_of(server)
    hosts = {
        process.host: None
        for process in server.processes.order_by("started_at", "pk")
        if rule.only_gone_hosts
        and process.host
        and is_old_enough(process, rule, now=now)
    }
    gone = gone_hosts(list(hosts)[:HOSTS_AT_MOST])
    for process in server.processes.all():
        found = process.host if process.host in gone else ""
        if process.gone_host != found:
            Process.objects.filter(pk=process.pk).update(gone_host=found)
