"""What is wrong with a mirror in ONTAP, and what a storage administrator does."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.gateways.ontap.types import Relationship, SvmPeer
from provisioner.mirrors.models import POLICY_PREFIX, Mirror
from provisioner.sites.models import Site

ANOTHER_OF_OUR_POLICIES = "mirror_keeps_another_number"


@dataclass(frozen=True)
class Trouble:
    """A code for scripts, and a sentence with the remedy for people."""

    code: str
    sentence: str


def on_peering(here: Site, home: Site, peer: SvmPeer | None) -> str:
    """Return what the peering from `here` to `home` lacks, and the command for it.

    Source: vserver peer create, accept, resume and modify in the ONTAP CLI reference.
    """
    if peer is None:
        return (
            f"The SVM {here.svm} of {here.name} is not peered with {home.svm} of "
            f"{home.name}. A storage administrator peers the clusters, then enters on "
            f"the cluster of {here.name}: vserver peer create -vserver {here.svm} "
            f"-peer-vserver {home.svm} -peer-cluster CLUSTER -applications snapmirror. "
            "Then retry."
        )
    if peer.state == "peered":
        return (
            f"The peering of {here.svm} with {peer.name} is not for SnapMirror. A "
            f"storage administrator adds snapmirror to its applications on the cluster "
            f"of {here.name} (vserver peer modify -applications replaces the list, so "
            "name the present ones too). Then retry."
        )
    # The side that was asked accepts; ONTAP calls it "pending" there.
    verb, where = {
        "suspended": ("resume", here),
        "pending": ("accept", here),
    }.get(peer.state, ("accept", home))
    vserver, other = (here.svm, peer.name) if where is here else (home.svm, here.svm)
    return (
        f"The peering of {here.svm} with {peer.name} is {peer.state}. A storage "
        f"administrator enters on the cluster of {where.name}: vserver peer {verb} "
        f"-vserver {vserver} -peer-vserver {other}. Then retry."
    )


def on_relationship(
    mirror: Mirror, relationship: Relationship | None, *, source_path: str = ""
) -> Trouble | None:
    """Return what keeps a relationship from transferring; None if nothing does.

    Without `source_path` only the source's volume is compared.
    """
    site, path = mirror.site.name, mirror.volume_path
    if relationship is None:
        return Trouble(
            "mirror_relationship_gone",
            f"No SnapMirror relationship leads to {path} any more. Retry: it is "
            "created again, and continues from the newest snapshot at both ends.",
        )
    found = relationship.source_path
    volume = mirror.template.volume_name
    if found and (found.partition(":")[2] != volume or source_path not in ("", found)):
        return Trouble(
            "mirror_of_another_volume",
            f"SnapMirror fills {path} from {found}, not from the template's volume. "
            "Nothing was changed. Ask a storage administrator what that relationship "
            "is for.",
        )
    if relationship.state == "broken_off":
        return Trouble(
            "mirror_broken_off",
            f"The relationship to {path} was broken off. A storage administrator "
            f"enters on the cluster of {site}: snapmirror resync -destination-path "
            f"{path}. It discards what was written there since. Then retry.",
        )
    if relationship.state == "paused":
        return Trouble(
            "mirror_paused",
            f"The relationship to {path} is paused. A storage administrator enters on "
            f"the cluster of {site}: snapmirror resume -destination-path {path}. Then "
            "retry.",
        )
    if relationship.policy == mirror.policy_name:
        return None
    if relationship.policy.startswith(POLICY_PREFIX):
        return Trouble(
            ANOTHER_OF_OUR_POLICIES,
            f"The relationship to {path} has the policy {relationship.policy} in place "
            f"of {mirror.policy_name}. Retry: it gets that policy. The next transfer "
            "would do the same.",
        )
    if relationship.policy:
        return Trouble(
            "mirror_policy_changed",
            f"The relationship to {path} has the policy {relationship.policy} in place "
            f"of {mirror.policy_name}. It could delete snapshots that clones need. A "
            f"storage administrator enters on the cluster of {site}: snapmirror modify "
            f"-destination-path {path} -policy {mirror.policy_name}. Then retry.",
        )
    return None
