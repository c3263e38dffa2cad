"""The demo's production server at a second site: replicas, a host, a plan of drills.

What a storage administrator sets up outside of Cloneyard is done here through ONTAP:
volumes that SnapMirror fills, and a snapshot of all parts that is transferred whenever
the demo starts.
"""

from __future__ import annotations

import time

from provisioner.accounts.models import User
from provisioner.demo.production import PARTS, RELEASES, VOLUME_BYTES, Production
from provisioner.drills.actions import drill_plan_save
from provisioner.drills.models import DrillPlan
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import MirrorVolumeSpec
from provisioner.lib import clocks
from provisioner.sandboxes.actions.hosts import sandbox_host_save
from provisioner.sandboxes.models import P4dVersion, SandboxHost
from provisioner.sites.models import PerforceServer, Site

HOST = "spare"
REPLICAS = {f"prod_{part}": f"prod_{part}_dr" for part in PARTS}
GROUP = "prod_replication"
POLICY = "Asynchronous"
FIRST_PORT = 16670
TRANSFERRED_WITHIN_SECONDS = 120.0
POLL_EVERY_SECONDS = 0.1


class NotReplicated(Exception):
    """SnapMirror of the lab did not transfer the server in time."""


def ensure_spare(production: Production, *, server: PerforceServer, site: Site) -> None:
    """Ensure copies of the server at the other site, and a plan to try them out.

    Raises: NotReplicated.
    """
    home, there = registry.ontap(production.site), registry.ontap(site)
    for source, replica in REPLICAS.items():
        if there.find_volume(replica) is not None:
            continue
        there.create_mirror_volume(
            MirrorVolumeSpec(
                name=replica,
                aggregate=site.aggregate,
                size_bytes=VOLUME_BYTES,
                comment="a copy of the demo's production server",
                export_policy="default",
            )
        )
        there.create_relationship(
            replica, source_path=f"{production.site.svm}:{source}", policy=POLICY
        )
    snapshot = f"replicated.{clocks.database_now():%Y-%m-%d_%H%M%S}"
    # A volume is in one group at a time, and sandboxes that are there have one.
    theirs = [each for each in home.list_groups() if set(each.volumes) == set(REPLICAS)]
    group = theirs[0] if theirs else home.create_group(GROUP, volumes=list(REPLICAS))
    home.create_group_snapshot(group.uuid, name=snapshot, comment="")
    if not theirs:
        home.delete_group(group.uuid)
    for replica in REPLICAS.values():
        _transfer(site, replica, snapshot=snapshot)
    _save(production, server=server, site=site)


def _transfer(site: Site, replica: str, *, snapshot: str) -> None:
    """Transfer a snapshot to a replica. Raises: NotReplicated."""
    gateway = registry.ontap(site)
    relationship = gateway.find_relationship(replica)
    if relationship is None:
        raise NotReplicated(f"{replica} is there, but nothing fills it: make clean.")
    uuid = gateway.start_transfer(relationship.uuid, snapshot=snapshot)
    ends = time.monotonic() + TRANSFERRED_WITHIN_SECONDS
    while time.monotonic() < ends:
        transfer = gateway.find_transfer(relationship.uuid, transfer_uuid=uuid)
        if transfer is not None and not transfer.is_running:
            if transfer.state == "success":
                return
            raise NotReplicated(f"{replica}: {transfer.error_message}")
        time.sleep(POLL_EVERY_SECONDS)
    raise NotReplicated(NotReplicated.__doc__)


def _save(production: Production, *, server: PerforceServer, site: Site) -> None:
    """Save the host at the other site, and the plan: once."""
    admin = User.objects.get(username="admin")
    host = SandboxHost.objects.filter(name=HOST).first()
    if host is None:
        host = sandbox_host_save(
            by=admin,
            name=HOST,
            site=site,
            address="127.0.0.1",
            first_port=FIRST_PORT,
            at_most=3,
            uid=production.uid,
            gid=production.gid,
        )
    if not DrillPlan.objects.filter(server=server).exists():
        drill_plan_save(
            by=admin,
            server=server,
            host=host,
            version=P4dVersion.objects.get(release=RELEASES[0]),
            replicas=REPLICAS,
            is_on=True,
        )
