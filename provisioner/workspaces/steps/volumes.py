"""What templates and workspaces do alike with their volumes."""

from __future__ import annotations

from provisioner.gateways.errors import AlreadyExists, Busy
from provisioner.gateways.ontap.types import ExportRule, Volume
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
