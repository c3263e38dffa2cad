"""The clones of a sandbox: made, mounted, and given to the user who runs p4d."""

from __future__ import annotations

import os

from provisioner.catalog.steps.volumes import (
    limits_in_our_words,
    require_online,
    require_ours,
)
from provisioner.gateways.errors import AlreadyExists
from provisioner.gateways.hosts import ownership
from provisioner.gateways.ontap.types import CloneSpec, Volume
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import SandboxVolume
from provisioner.sandboxes.steps.run import SandboxRun
from provisioner.sites.export_policies import ensure_policy_rules, policies_of


def ensure_clones(run: SandboxRun) -> None:
    """Ensure a FlexClone of each volume with our tag.

    Raises: StepRefused (another volume has the name, no room).
    """
    sandbox, host = run.sandbox, run.sandbox.host
    is_of_ontap = run.site.reown == run.site.Reown.ONTAP
    for row in run.volumes:
        spec = CloneSpec(
            name=row.clone_name,
            parent_volume=row.source,
            parent_snapshot=row.replicated or sandbox.snapshot_name,
            comment=sandbox.volume_comment,
            uid=host.uid if is_of_ontap else None,
            gid=host.gid if is_of_ontap else None,
        )
        volume = _ensure_clone(run, spec)
        with run.writing():
            SandboxVolume.objects.filter(pk=row.pk).update(clone_uuid=volume.uuid)


def _ensure_clone(run: SandboxRun, spec: CloneSpec) -> Volume:
    volume = run.ontap.find_volume(spec.name)
    if volume is None:
        try:
            with limits_in_our_words():
                volume = run.ontap.create_clone(spec)
        except AlreadyExists:
            volume = run.ontap.find_volume(spec.name)
            if volume is None:
                raise
    require_ours(volume, comment=spec.comment)
    require_online(volume)
    return volume


def ensure_mounted(run: SandboxRun) -> None:
    """Mount the clones where only workers may mount them."""
    site = run.site
    policy = site.templates_policy
    ensure_policy_rules(run.ontap, policy, rules=policies_of(site)[policy])
    for row in run.volumes:
        volume = run.ontap.get_volume(row.clone_uuid)
        if (volume.export_policy, volume.snapshot_policy) != (policy, "none"):
            run.ontap.set_volume_policies(
                row.clone_uuid,
                export_policy=policy,
                root_mode="750",
                shows_snapshots=False,
            )
        if volume.junction_path != row.junction_path:
            run.ontap.mount_volume(row.clone_uuid, junction_path=row.junction_path)


def ensure_owned(run: SandboxRun) -> None:
    """Give every file of the clones to the user who runs the sandbox's server.

    Without root they have to be that user's already.

    Raises: StepRefused.
    """
    host = run.sandbox.host
    for row in run.volumes:
        root = run.visible_root(row.junction_path)
        if os.geteuid() == 0:
            report = ownership.change_ownership(root, uid=host.uid, gid=host.gid)
            if report.failures:
                raise StepRefused(run.keep_failures(report), code="files_not_owned")
        elif root.stat().st_uid != os.geteuid():
            raise StepRefused(
                f"The worker at {host.name} does not run as root, so it cannot give "
                f"{root} to uid {host.uid}.",
                code="files_not_owned",
            )
