"""Deleting what nothing needs any more of a template's snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.workspaces import retention
from provisioner.workspaces.models import Template
from provisioner.workspaces.steps.run import StepRun


def ensure_pruned(run: StepRun) -> dict[str, Any]:
    """Have no more snapshots than something needs; see retention.pins_of."""
    deleted, refused = delete_superfluous(
        run.ontap,
        run.template,
        volume_uuid=run.result_of("volume")["volume_uuid"],
        ontap_job_started=run.remember_ontap_job,
    )
    return {"deleted": deleted, "refused": refused}


def delete_superfluous(
    ontap: OntapGateway,
    template: Template,
    *,
    volume_uuid: str,
    ontap_job_started: Callable[[str], None] = lambda ontap_job_uuid: None,
) -> tuple[list[str], dict[str, str]]:
    """Delete what nothing needs; return names, and what ONTAP keeps with its reasons.

    What a clone of somebody else needs stays on the offer; a sweep asks again later.
    Safe to repeat: what was withdrawn by an attempt that was cut short goes as well.
    """
    there = {found.uuid: found for found in ontap.list_snapshots(volume_uuid)}
    refused: dict[str, str] = {}
    for snapshot in retention.superfluous(template):
        found = there.get(snapshot.ontap_uuid)
        if found is not None and found.owners:
            refused[snapshot.name] = f"In use: {', '.join(found.owners)}."
        else:
            retention.withdraw(snapshot)
    deleted = []
    for snapshot in retention.withdrawn(template, there=list(there)):
        try:
            ontap.delete_snapshot(
                volume_uuid,
                snapshot_uuid=snapshot.ontap_uuid,
                ontap_job_started=ontap_job_started,
            )
        except PermanentGatewayError as error:
            retention.offer_again(snapshot)
            refused[snapshot.name] = error.sentence
        else:
            deleted.append(snapshot.name)
    return deleted, refused
