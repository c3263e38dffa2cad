"""What templates and workspaces do alike with their volumes."""

from __future__ import annotations

from collections.abc import Callable

from provisioner.gateways.errors import AlreadyExists, Busy
from provisioner.gateways.ontap.types import ExportRule, Volume
from provisioner.workspaces.errors import StepRefused
from provisioner.workspaces.steps.run import StepRun


def ensure_export_policy(run: StepRun) -> str:
    """Have the site's export policy with a rule for its hosts; return its name.

    Superuser access is for the hosts' own chown; Source:
    POST /api/protocols/nfs/export-policies.
    """
    site = run.site
    rule = ExportRule(clients=tuple(site.export_clients))
    policy = run.ontap.find_export_policy(site.export_policy)
    if policy is None:
        try:
            policy = run.ontap.create_export_policy(site.export_policy, rules=(rule,))
        except AlreadyExists:
            policy = run.ontap.find_export_policy(site.export_policy)
    if policy is not None and not policy.rules:
        # A policy without rules lets nobody in.
        run.ontap.add_export_rule(policy.id, rule=rule)
    return site.export_policy


def ensure_ours(
    run: StepRun, *, name: str, comment: str, create: Callable[[], Volume]
) -> Volume:
    """Have a volume of this name that carries our tag; create it where there is none.

    Raises: StepRefused where the name is a stranger's.
    """
    volume = run.ontap.find_volume(name)
    if volume is None:
        try:
            volume = create()
        except AlreadyExists:
            # Our own request before a lost reply, or a stranger: the tag decides.
            volume = run.ontap.find_volume(name)
            if volume is None:
                raise
    if volume.comment != comment:
        raise StepRefused(
            f"A volume named {name} exists on this SVM and is not ours; it was left "
            "alone.",
            code="volume_name_taken",
        )
    return volume


def require_online(volume: Volume) -> None:
    """Raise Busy while ONTAP is still making the volume.

    An attempt that was cut short leaves one that exists and is not online yet.
    """
    if volume.state != "online":
        raise Busy(
            f"The volume {volume.name} is {volume.state or 'not online yet'}.",
            system="ontap",
            operation="volume create",
        )


def ensure_policies(run: StepRun, *, volume_uuid: str) -> None:
    """Have a volume under the site's export policy and snapshot policy none."""
    policy = ensure_export_policy(run)
    volume = run.ontap.get_volume(volume_uuid)
    if (volume.export_policy, volume.snapshot_policy) != (policy, "none"):
        run.ontap.set_volume_policies(
            volume_uuid,
            export_policy=policy,
            ontap_job_started=run.remember_ontap_job,
        )


def ensure_junction(run: StepRun, *, volume_uuid: str, junction_path: str) -> None:
    """Have a volume in the SVM's namespace at this path."""
    if run.ontap.get_volume(volume_uuid).junction_path != junction_path:
        run.ontap.mount_volume(
            volume_uuid,
            junction_path=junction_path,
            ontap_job_started=run.remember_ontap_job,
        )
