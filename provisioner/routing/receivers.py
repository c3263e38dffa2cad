"""Add what attempts at steps asked of Perforce servers to the traffic of the day."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.dispatch import receiver

from provisioner.engine.events import attempt_ended
from provisioner.engine.models import Step
from provisioner.gateways.perforce.meter import Usages
from provisioner.lib import clocks
from provisioner.lib.prepared import planned_cursor
from provisioner.routing.models import Routed

# One statement: each attempt at a step adds to the same few rows of the day. Where
# several rows are of one server, it counts for the oldest.
_ADD = """
    INSERT INTO routing_trafficday AS known (day, server_id, purpose, account_id,
        commands, synced_files, synced_bytes, flushed_files)
    SELECT %(day)s, id, %(purpose)s, %(account)s,
        %(commands)s, %(synced_files)s, %(synced_bytes)s, %(flushed_files)s
    FROM sites_perforceserver WHERE p4port = %(port)s ORDER BY id LIMIT 1
    ON CONFLICT (day, server_id, purpose, account_id) DO UPDATE SET
        commands = known.commands + excluded.commands,
        synced_files = known.synced_files + excluded.synced_files,
        synced_bytes = known.synced_bytes + excluded.synced_bytes,
        flushed_files = known.flushed_files + excluded.flushed_files
"""


@receiver(attempt_ended, sender=Step)
def add_traffic(*, step: Step, usages: Usages, **_: Any) -> None:
    row = step.operation.subject.row
    if not usages or not isinstance(row, Routed):
        return
    on_behalf: dict[str, Any] = {
        "day": clocks.database_now().date(),
        "purpose": row.used_for,
        "account": row.owner_id,
    }
    with planned_cursor() as cursor:
        # In the same order everywhere: others add to the same rows.
        for port in sorted(usages):
            cursor.execute(_ADD, {**on_behalf, "port": port, **asdict(usages[port])})
