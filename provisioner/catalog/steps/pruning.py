"""Delete a template's snapshots that nothing needs any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from provisioner.catalog import retention
from provisioner.catalog.models import Template
from provisioner.catalog.snapshot_comments import asked_text, build_number_of, mark_of
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.volume import TemplateVolume
from provisioner.engine.models import Operation
from provisioner.gateways.errors import PermanentGatewayError
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import VolumeSnapshot


def ensure_pruned(run: TemplateRun) -> None:
    """Delete the snapshots that nothing needs; see retention.pins_of."""
    delete_superfluous(
        run.ontap,
        run.template,
        volume_uuid=run.result_of(TemplateVolume).volume_uuid,
    )


def delete_superfluous(
    ontap: OntapGateway,
    template: Template,
    *,
    volume_uuid: str,
) -> tuple[list[str], dict[str, str]]:
    """Delete unneeded snapshots; return their names, and what ONTAP kept and why.

    Snapshots that somebody else's clone needs stay published; a sweep retries. Safe to
    repeat: this also deletes what an interrupted attempt marked, and what a build left
    that ended before it could publish it.
    """
    there = {found.uuid: found for found in ontap.list_snapshots(volume_uuid)}
    refused: dict[str, str] = {}
    for snapshot in retention.superfluous(template):
        found = there.get(snapshot.ontap_uuid)
        if found is not None and found.owners:
            refused[snapshot.name] = f"In use: {', '.join(found.owners)}."
        else:
            retention.mark_deleted(snapshot)
    deleted = []

    def delete(name: str, uuid: str) -> bool:
        try:
            ontap.delete_snapshot(volume_uuid, snapshot_uuid=uuid)
        except PermanentGatewayError as error:
            refused[name] = error.sentence
            return False
        deleted.append(name)
        return True

    for snapshot in retention.marked_deleted(template, there=list(there)):
        if not delete(snapshot.name, snapshot.ontap_uuid):
            retention.mark_there(snapshot)
    for left in _left_by_builds(template, there.values()):
        delete(left.name, left.uuid)
    return deleted, refused


def _left_by_builds(
    template: Template, there: Iterable[VolumeSnapshot]
) -> Iterator[VolumeSnapshot]:
    """Yield unpublished snapshots of builds that are in the database and have ended.

    Those of other builds stay: after an older backup was restored they are adopted.
    """
    known = set(template.snapshots.values_list("ontap_uuid", flat=True))
    for snapshot in there:
        mark, number = mark_of(snapshot.comment), build_number_of(snapshot.name)
        if number is None or mark is None:
            continue
        if snapshot.uuid in known or snapshot.owners:
            continue
        build = template.operations.filter(pk=number).first()
        if (
            build is not None
            and build.state != Operation.State.RUNNING
            and mark.asked == asked_text(build)
        ):
            yield snapshot
