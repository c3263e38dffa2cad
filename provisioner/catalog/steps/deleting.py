"""Delete a template's Perforce client and its ONTAP volume."""

from __future__ import annotations

from provisioner.catalog.models import Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.gateways.errors import Busy
from provisioner.gateways.ontap.types import Volume
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib.refusals import StepRefused

NAMED = 5


def ensure_no_clones(run: TemplateRun) -> None:
    """Refuse to delete a volume that has others' clones, before anything is deleted."""
    volume = _own_volume(run)
    if volume is None:
        return
    clones = sorted(
        each.name
        for each in run.ontap.list_volumes()
        if each.clone_parent and each.clone_parent.volume_uuid == volume.uuid
    )
    if clones:
        raise StepRefused(
            f"The volume {volume.name} has {len(clones):,} clones, such as "
            f"{', '.join(clones[:NAMED])}. Nothing was deleted: remove these, then "
            "delete the template again.",
            code="has_clones",
        )
    for snapshot in run.ontap.list_snapshots(volume.uuid):
        if snapshot.owners:
            raise StepRefused(
                f"The snapshot {snapshot.name} of {volume.name} is in use: "
                f"{', '.join(snapshot.owners)}. Nothing was deleted.",
                code="snapshot_in_use",
            )


def ensure_client_deleted(run: TemplateRun) -> None:
    """Delete the template's client; leave a foreign one alone."""
    client = _own_client(run)
    if client is not None:
        run.perforce.clients.delete(
            client.name, server_id=client.server_id, as_seen=client
        )


def ensure_left(run: TemplateRun) -> None:
    """Unmount the volume on this host, before ONTAP takes it out of the namespace."""
    run.leave_root(run.template.junction_path)


def ensure_unmounted(run: TemplateRun) -> None:
    """Ensure that the volume has no junction path."""
    volume = _own_volume(run)
    if volume is not None and volume.junction_path:
        run.ontap.unmount_volume(volume.uuid)


def ensure_volume_deleted(run: TemplateRun) -> None:
    """Delete the volume; ONTAP keeps it in its recovery queue for some hours."""
    volume = _own_volume(run)
    if volume is not None:
        run.ontap.delete_volume(volume.uuid, force=False)


def ensure_nothing_left(run: TemplateRun) -> None:
    """Verify that neither client nor volume is left."""
    template = run.template
    if _own_client(run) is not None:
        raise _still_there(f"the client {template.client_name}")
    if _own_volume(run) is not None:
        raise _still_there(f"the volume {template.volume_name}")
    with run.writing():
        Template.objects.filter(pk=template.pk).update(
            volume_uuid="",
            actual_size_bytes=None,
            aggregate="",
            used_bytes=None,
            used_inodes=None,
            max_inodes=None,
            snapshots_in_volume=0,
            clones_of_others=0,
        )


def _own_volume(run: TemplateRun) -> Volume | None:
    volume = run.ontap.find_volume(run.template.volume_name)
    is_own = volume is not None and run.template.is_tagged(volume.comment)
    return volume if is_own else None


def _own_client(run: TemplateRun) -> ClientSpec | None:
    client = run.perforce.clients.find(run.template.client_name)
    is_own = client is not None and str(run.template.tag) in client.description
    return client if is_own else None


def _still_there(what: str) -> Busy:
    return Busy(f"Still there: {what}.", system="cloneyard", operation="delete")
