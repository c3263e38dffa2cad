"""Apply a site's ceilings in ONTAP: QoS policies, and the volumes below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from provisioner.accounts.system import system_user
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template
from provisioner.gateways import registry
from provisioner.gateways.errors import AlreadyExists, GatewayError
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import QosSpec, VolumeQos
from provisioner.lib import clocks
from provisioner.sites.models import Ceiling, Site, policy_name
from provisioner.workspaces.models import Workspace

NEARLY = 0.95
BYTES_OF_A_MB = 1_000_000


def keep_ceilings(site: Site) -> None:
    """Make ONTAP agree with a site's ceilings, and record what is below them.

    QoS policies are created, changed back, and deleted once their ceiling is removed.
    Volumes of ours are put below theirs; a policy that others gave to a volume without
    a ceiling stays. Safe to repeat.

    Raises: GatewayError; each ceiling then says why.
    """
    ceilings = list(Ceiling.objects.filter(site=site).select_related("site"))
    if not ceilings:
        return
    done = list[str]()
    try:
        _apply(registry.ontap(site), site, ceilings, done)
    except GatewayError as error:
        Ceiling.objects.filter(site=site).update(status_message=str(error))
        raise
    finally:
        if done:
            message = " ".join(done)
            record_event(
                site, kind="ceilings_applied", message=message, actor=system_user()
            )


def _apply(
    ontap: OntapGateway, site: Site, ceilings: list[Ceiling], done: list[str]
) -> None:
    """Add what was done to `done`, as sentences."""
    wanted = dict[str, str]()
    for ceiling in ceilings:
        if ceiling.has_limits:
            _ensure_policy(ontap, ceiling, done)
            wanted[ceiling.purpose] = ceiling.policy_name
    unused = {
        policy_name(site, ceiling.purpose, is_shared=is_shared)
        for ceiling in ceilings
        for is_shared in (True, False)
    } - set(wanted.values())
    purposes = _purposes_of_volumes(site)
    volumes = [each for each in ontap.list_volume_qos() if each.uuid in purposes]
    changed = Counter[str]()
    try:
        for volume in volumes:
            expected = wanted.get(purposes[volume.uuid], "")
            if volume.policy != expected and (expected or volume.policy in unused):
                ontap.set_volume_qos(volume.uuid, policy=expected)
                changed[expected] += 1
    finally:
        for name, number in changed.items():
            done.append(f"QoS policy {name or 'none'} given to volumes: {number:,}.")
    for name in sorted(unused):
        policy = ontap.find_qos_policy(name)
        if policy is not None:
            ontap.delete_qos_policy(policy.uuid)
            done.append(f"Deleted the QoS policy {name}.")
    for ceiling in ceilings:
        below = [each for each in volumes if purposes[each.uuid] == ceiling.purpose]
        _record(ceiling, below)


def _ensure_policy(ontap: OntapGateway, ceiling: Ceiling, done: list[str]) -> None:
    spec = QosSpec(
        name=ceiling.policy_name,
        max_iops=ceiling.max_iops or 0,
        max_mbps=ceiling.max_mbps or 0,
        is_shared=ceiling.is_shared,
    )
    policy = ontap.find_qos_policy(spec.name)
    if policy is None:
        try:
            ontap.create_qos_policy(spec)
        except AlreadyExists as error:
            raise AlreadyExists(
                f"Another SVM of the cluster has a QoS policy {spec.name}. Rename it, "
                "or give the site another export policy, whose name it begins with.",
                system=error.system,
                operation=error.operation,
                remote_code=error.remote_code,
            ) from error
        done.append(f"Created the QoS policy {spec.name}.")
    elif policy.spec != spec:
        ontap.set_qos_limits(policy.uuid, spec)
        done.append(f"Set the limits of the QoS policy {spec.name}.")
    Ceiling.objects.filter(pk=ceiling.pk).update(kept_as=spec.name)


def _purposes_of_volumes(site: Site) -> dict[str, str]:
    """Return the purpose of each volume of ours at a site, by UUID."""
    templates = Template.objects.filter(site=site).exclude(volume_uuid="")
    purposes: dict[str, str] = dict.fromkeys(
        templates.values_list("volume_uuid", flat=True), Ceiling.Purpose.TEMPLATES
    )
    there = Workspace.objects.there().filter(site=site).exclude(volume_uuid="")
    for workspace in there.only("volume_uuid", "purpose"):
        purposes[workspace.volume_uuid] = workspace.ceiling_purpose
    return purposes


def _record(ceiling: Ceiling, volumes: list[VolumeQos]) -> None:
    row = Ceiling.objects.filter(pk=ceiling.pk)
    if ceiling.has_limits:
        row.update(
            volumes=len(volumes),
            at_ceiling=_at_ceiling(ceiling, volumes),
            kept_at=clocks.database_now(),
            status_message="",
        )
    else:
        # Limits may have been given again meanwhile.
        row.filter(max_iops=None, max_mbps=None).delete()


def _at_ceiling(ceiling: Ceiling, volumes: list[VolumeQos]) -> int:
    """Return how many volumes reached their limit in ONTAP's last sample.

    All of them where they share a limit that was reached together.
    """
    if not ceiling.is_shared:
        return sum(_reaches(ceiling, [volume]) for volume in volumes)
    return len(volumes) if _reaches(ceiling, volumes) else 0


def _reaches(ceiling: Ceiling, volumes: Iterable[VolumeQos]) -> bool:
    iops = sum(volume.iops or 0 for volume in volumes)
    rate = sum(volume.bytes_per_second or 0 for volume in volumes)
    limits = ((iops, ceiling.max_iops), (rate / BYTES_OF_A_MB, ceiling.max_mbps))
    return any(most is not None and seen >= most * NEARLY for seen, most in limits)
