"""The contract with ONTAP: every verb Cloneyard uses, for the volumes of one SVM.

`rest.py` beside it implements it with netapp_ontap. Every method may raise
Unreachable (no answer in time; the effect may have happened), Busy (asked to come
back) and AuthFailed; each lists what it raises beyond that.

Writes return when ONTAP's own job has ended and a read shows the effect. They call
`ontap_job_started(uuid)` as soon as ONTAP has accepted the request, so that the
caller can remember the job before waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from provisioner.gateways.ontap.types import (
    Aggregate,
    CloneSpec,
    Cluster,
    DataLif,
    ExportPolicy,
    ExportRule,
    FileEntry,
    OntapJob,
    Svm,
    Volume,
    VolumeSnapshot,
    VolumeSpec,
    VolumeUsage,
)

OntapJobStarted = Callable[[str], None]


def forget(ontap_job_uuid: str) -> None:
    """Take note of nothing: for callers that do not record ONTAP jobs."""


class OntapGateway(Protocol):
    """One SVM of one ONTAP cluster."""

    def get_cluster(self) -> Cluster:
        """Return name and version; the cheapest proof of a working connection.

        Source: GET /api/cluster.
        """

    def check_svm(self) -> None:
        """Prove that the SVM is there, runs and serves NFS.

        Raises: NotFound, Refused (stopped, or NFS off).
        Source: GET /api/svm/svms.
        """

    def list_svms(self) -> list[Svm]:
        """Return the SVMs that our account may see.

        Source: GET /api/svm/svms.
        """

    def has_license(self, name: str) -> bool:
        """Say whether the cluster has a licence, such as "flexclone".

        Raises: Refused (our account may not ask).
        Source: GET /api/cluster/licensing/licenses.
        """

    def get_aggregate(self, name: str) -> Aggregate:
        """Return size and free space in bytes.

        Raises: NotFound.
        Source: GET /api/storage/aggregates.
        """

    def list_data_lifs(self) -> list[DataLif]:
        """Return the SVM's addresses that serve NFS.

        Source: GET /api/network/ip/interfaces.
        """

    def list_directory(
        self, volume_uuid: str, path: str, *, at_most: int
    ) -> list[FileEntry]:
        """Return the first entries of a directory in a volume, "." among them.

        `path` goes from the volume's root, "" is the root itself.

        Raises: NotFound, Refused (our account may not look).
        Source: GET /api/storage/volumes/{uuid}/files/{path}.
        """

    def list_unfinished_jobs(self) -> list[OntapJob]:
        """Return ONTAP jobs that have not ended, whoever started them.

        Source: GET /api/cluster/jobs?state=queued|running|paused.
        """

    def cancel_job(self, uuid: str) -> None:
        """Have an ONTAP job given up. Ended or forgotten already is success.

        Raises: Refused (458776: it is too far on to be cancelled, and goes on).
        Source: PATCH /api/cluster/jobs/{uuid}?action=cancel.
        """

    def find_volume(self, name: str) -> Volume | None:
        """Return the SVM's volume of that name, or None.

        Source: GET /api/storage/volumes?name=&svm.name=.
        """

    def get_volume(self, uuid: str) -> Volume:
        """Return the volume.

        Raises: NotFound.
        Source: GET /api/storage/volumes/{uuid}.
        """

    def list_volumes(self, *, comment_prefix: str = "") -> list[Volume]:
        """Return the SVM's volumes whose comment begins with the prefix."""

    def list_volume_usage(self) -> list[VolumeUsage]:
        """Return what each volume of the SVM takes, deleted ones in recovery left out.

        Few requests, however many volumes there are: ONTAP answers page by page.

        Source: GET /api/storage/volumes?fields=clone,space.physical_used.
        """

    def max_volumes(self) -> int | None:
        """Return how many volumes the SVM may have, None where it has no limit.

        Raises: NotFound (SVM).
        Source: GET /api/svm/svms max_volumes.
        """

    def create_volume(
        self, spec: VolumeSpec, *, ontap_job_started: OntapJobStarted = forget
    ) -> Volume:
        """Create a thin read-write volume, unmounted.

        Raises: AlreadyExists, NotFound (aggregate), Refused (name, space, limit).
        Source: POST /api/storage/volumes.
        """

    def create_clone(
        self, spec: CloneSpec, *, ontap_job_started: OntapJobStarted = forget
    ) -> Volume:
        """Create a FlexClone of a snapshot, unmounted, and wait until it is online.

        Raises: AlreadyExists, NotFound (parent or snapshot), Refused (limit, space,
        uid or gid 0).
        Source: POST /api/storage/volumes with clone.is_flexclone.
        """

    def set_volume_policies(
        self,
        uuid: str,
        *,
        export_policy: str | None = None,
        root_mode: str | None = None,
        shows_snapshots: bool | None = None,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        """Set the export policy with snapshot policy none, the mode of the root
        directory in octal digits ("700"), and whether clients see .snapshot; None
        leaves each as it is. Safe to repeat. Before 9.13.1 .snapshot stays as it is.

        A clone POST does not take these (918247): they are a second call.

        Raises: NotFound (volume or policy).
        Source: PATCH /api/storage/volumes/{uuid}.
        """

    def list_showing_snapshots(
        self, *, comment_prefix: str, shows_snapshots: bool
    ) -> list[str]:
        """Return UUIDs of the SVM's volumes whose clients see .snapshot, or do not.

        Those alone whose comment begins so; nothing before 9.13.1, which cannot tell.

        Source: GET /api/storage/volumes?snapshot_directory_access_enabled=.
        """

    def set_volume_comment(
        self,
        uuid: str,
        *,
        comment: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        """Set the comment; "" leaves none. Safe to repeat.

        Raises: NotFound, Refused (longer than 1,023 characters).
        Source: PATCH /api/storage/volumes/{uuid} comment.
        """

    def set_volume_size(
        self,
        uuid: str,
        *,
        size_bytes: int,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        """Grow or shrink a volume; ONTAP rounds to blocks. Safe to repeat.

        Raises: NotFound, OutOfSpace, Refused (less than what is in it).
        Source: PATCH /api/storage/volumes/{uuid}, size.
        """

    def set_max_inodes(
        self,
        uuid: str,
        *,
        max_inodes: int,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        """Set how many files a volume may have. Safe to repeat.

        More of them take no space until there are files.

        Raises: NotFound, Refused (more than `most_inodes`, less than are in use).
        Source: PATCH /api/storage/volumes/{uuid}, files.maximum.
        """

    def bring_volume_online(
        self, uuid: str, *, ontap_job_started: OntapJobStarted = forget
    ) -> Volume:
        """Have the volume online; it comes without a junction path. Safe to repeat.

        Raises: NotFound, Refused (the volume is damaged).
        Source: PATCH /api/storage/volumes/{uuid} state online.
        """

    def mount_volume(
        self,
        uuid: str,
        *,
        junction_path: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        """Give the volume its junction path. Safe to repeat.

        Raises: NotFound, Refused (path taken, invalid, or without a parent).
        Source: PATCH /api/storage/volumes/{uuid} nas.path.
        """

    def unmount_volume(
        self, uuid: str, *, ontap_job_started: OntapJobStarted = forget
    ) -> None:
        """Take the junction path away. Unmounted or gone already is success.

        Source: PATCH /api/storage/volumes/{uuid} nas.path "".
        """

    def delete_volume(
        self, uuid: str, *, force: bool, ontap_job_started: OntapJobStarted = forget
    ) -> None:
        """Destroy the volume. Gone already is success.

        `force` skips the recovery queue, where a deleted volume keeps its space and
        pins its parent for hours.

        Raises: InUse (it has clones, or SnapMirror holds it).
        Source: DELETE /api/storage/volumes/{uuid}.
        """

    def find_snapshot(self, volume_uuid: str, *, name: str) -> VolumeSnapshot | None:
        """Return the volume's snapshot of that name, or None.

        Raises: NotFound (volume).
        """

    def list_snapshots(self, volume_uuid: str) -> list[VolumeSnapshot]:
        """Return the volume's snapshots, oldest first.

        Raises: NotFound (volume).
        """

    def create_snapshot(
        self,
        volume_uuid: str,
        *,
        name: str,
        comment: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> VolumeSnapshot:
        """Take a snapshot.

        Raises: AlreadyExists, NotFound (volume), Refused (limit, space).
        Source: POST /api/storage/volumes/{uuid}/snapshots.
        """

    def delete_snapshot(
        self,
        volume_uuid: str,
        *,
        snapshot_uuid: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> None:
        """Delete a snapshot. Gone already is success.

        Raises: InUse (a clone depends on it, 1638555).
        Source: DELETE /api/storage/volumes/{uuid}/snapshots/{uuid}.
        """

    def find_export_policy(self, name: str) -> ExportPolicy | None:
        """Return the SVM's export policy with its rules, or None.

        Source: GET /api/protocols/nfs/export-policies.
        """

    def create_export_policy(
        self, name: str, *, rules: tuple[ExportRule, ...]
    ) -> ExportPolicy:
        """Create an export policy.

        Raises: AlreadyExists, Refused (name, client match).
        Source: POST /api/protocols/nfs/export-policies.
        """

    def set_export_rules(
        self, policy_id: int, *, rules: tuple[ExportRule, ...]
    ) -> None:
        """Replace all rules of a policy, in this order. Safe to repeat.

        The first rule that matches a host decides; without rules nobody gets in.

        Raises: NotFound (policy), Refused (client match, duplicate).
        Source: PATCH /api/protocols/nfs/export-policies/{id}.
        """
