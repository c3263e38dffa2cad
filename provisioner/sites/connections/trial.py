"""A trial: a small volume, its clone seen on a host, and the removal of all of it.

Only this proves that our account may write, that FlexClone is licensed, that the export
policy admits the host, and that its mount root is the namespace of this SVM.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from functools import partial

from django.utils.crypto import salted_hmac

from provisioner.gateways import registry
from provisioner.gateways.hosts import mounts
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import CloneSpec, Volume, VolumeSpec
from provisioner.sites.connections.checklist import (
    Check,
    Checks,
    Outcome,
    Remark,
    Wrong,
    check,
)
from provisioner.sites.connections.ontap import reach_ontap
from provisioner.sites.export_policies import ensure_policy_rules, export_rules_of
from provisioner.sites.models import Site

PREFIX = "cloneyard_trial"
COMMENT = "cloneyard-trial"
SNAPSHOT = "trial"
SIZE_BYTES = 20 * 2**20  # ONTAP's smallest
ANSWER_WITHIN_SECONDS = 30.0
ALL_WITHIN_SECONDS = 180.0
SEEN_WITHIN_SECONDS = 15.0

_RIGHTS = (
    "The role of our account needs all rights to /api/storage/volumes, "
    "/api/protocols/nfs/export-policies and /api/cluster/jobs."
)


def try_out(site: Site) -> list[Check]:
    """Create, check and remove, on a host of the site. Old leftovers are removed first.

    One at a time per site, as it takes the volumes of all its trials for leftovers.
    """
    reached = reach_ontap(site)
    if any(one.outcome == Outcome.FAILED for one in reached):
        return reached
    with registry.first_ontap(site, seconds=ANSWER_WITHIN_SECONDS) as ontap:
        name = f"{PREFIX}_{secrets.token_hex(4)}"
        return _Trial(site=site, ontap=ontap, name=name).run()


@dataclass(kw_only=True)
class _Trial(Checks):
    seconds = ALL_WITHIN_SECONDS

    site: Site
    ontap: OntapGateway
    name: str

    @check(advice=_RIGHTS)
    def trial_volume(self) -> str:
        site = self.site
        self._remove_all()
        ensure_policy_rules(self.ontap, site.export_policy, rules=export_rules_of(site))
        made = self.ontap.create_volume(
            VolumeSpec(
                name=self.name,
                aggregate=site.aggregate,
                size_bytes=SIZE_BYTES,
                comment=self._comment,
                export_policy=site.export_policy,
                uid=site.template_uid,
                gid=site.template_gid,
                shows_snapshots=site.shows_snapshots,
            )
        )
        self.ontap.create_snapshot(made.uuid, name=SNAPSHOT, comment=COMMENT)
        return f"The volume {self.name} and its snapshot were created."

    @check(
        after=("trial_volume",),
        advice=f"{_RIGHTS} FlexClone needs a license: system license show",
    )
    def trial_clone(self) -> str:
        site = self.site
        made = self.ontap.create_clone(
            CloneSpec(
                name=self._clone_name,
                parent_volume=self.name,
                parent_snapshot=SNAPSHOT,
                comment=self._comment,
                uid=site.template_uid,
                gid=site.template_gid,
            )
        )
        self.ontap.set_volume_policies(
            made.uuid,
            export_policy=site.export_policy,
            shows_snapshots=site.shows_snapshots,
        )
        return "Its clone was created."

    @check(
        after=("trial_clone",),
        advice=f"{_RIGHTS} The root of the SVM's namespace has to be writable.",
    )
    def trial_junction(self) -> str:
        clone = self.ontap.find_volume(self._clone_name)
        if clone is None:
            raise Wrong("The clone is gone.", advice="Did somebody remove it?")
        self.ontap.mount_volume(clone.uuid, junction_path=self._junction_path)
        return f"It is in the namespace at {self._junction_path}."

    @check(
        after=("trial_junction",),
        advice="{site.mount_root} has to be the root of the namespace of {site.svm}, "
        "or the site has to mount each volume; the export policies of the SVM's root "
        "volume and {site.export_policy} have to let this host in.",
    )
    def trial_seen(self) -> str:
        site = self.site
        path = site.path_of(self._junction_path)
        if site.mounts_each:
            mount = site.volume_mount(self._junction_path)
            mount.ensure(addresses=partial(registry.nfs_addresses, site))
        mounts.wait_until_visible(path, timeout_seconds=SEEN_WITHIN_SECONDS)
        uid = os.stat(path).st_uid
        if uid != site.template_uid:
            raise Remark(
                f"This host sees it at {path}, but its owner is uid {uid}, not "
                f"{site.template_uid}.",
                advice="If ONTAP does not change the owner of a clone, a host does, "
                "by a parallel chown. That takes longer.",
            )
        return f"This host sees it at {path}, and uid {uid} owns it."

    @check(
        is_last=True,
        advice=f"Remove what is left by hand: volumes named {PREFIX}_….",
    )
    def trial_removed(self) -> str:
        removed = self._remove_all()
        return f"Nothing is left of it ({removed} volumes removed)."

    @property
    def _comment(self) -> str:
        """Return the trial's tag: other installations may use the same SVM."""
        mark = salted_hmac(COMMENT, str(self.site.pk), algorithm="sha256").hexdigest()
        return f"{COMMENT}:{mark[:16]}"

    @property
    def _clone_name(self) -> str:
        return f"{self.name}_clone"

    @property
    def _junction_path(self) -> str:
        return f"/{self._clone_name}"

    def _remove_all(self) -> int:
        """Remove everything made by trials of this site, clones before parents."""
        ours = [
            volume
            for volume in self.ontap.list_volumes(comment_prefix=self._comment)
            if volume.name.startswith(f"{PREFIX}_")
        ]
        for volume in sorted(ours, key=_is_parent):
            if volume.junction_path:
                if self.site.mounts_each:
                    self.site.volume_mount(volume.junction_path).remove()
                self.ontap.unmount_volume(volume.uuid)
            self.ontap.delete_volume(volume.uuid, force=True)
        return len(ours)


def _is_parent(volume: Volume) -> bool:
    return volume.clone_parent is None
