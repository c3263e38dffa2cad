"""The contract in gateway.py, kept over ONTAP's REST API."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from provisioner.gateways.errors import Busy, NotFound, Refused
from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.connection import OntapConnection
from provisioner.gateways.ontap.errors import problem
from provisioner.gateways.ontap.gateway import OntapGateway, OntapJobStarted, forget
from provisioner.gateways.ontap.names import check_junction_path, exact_name, path_uuid
from provisioner.gateways.ontap.polling import look_until
from provisioner.gateways.ontap.types import (
    SIZES_DIFFER_BYTES,
    Aggregate,
    CloneSpec,
    Cluster,
    DataLif,
    ExportPolicy,
    ExportRule,
    FileEntry,
    OntapAccount,
    OntapJob,
    Svm,
    Volume,
    VolumeSnapshot,
    VolumeSpec,
    VolumeUsage,
)

JOB_LIMIT_SECONDS = 300.0
EFFECT_LIMIT_SECONDS = 30.0

JOB_HAS_ENDED = "458762"

# What a release answers that does not know an argument, or a field of a query.
UNEXPECTED_ARGUMENT, INVALID_VALUE = "262179", "262197"

_VOLUMES = "/storage/volumes"
_EXPORT_POLICIES = "/protocols/nfs/export-policies"
_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)

_Seen = TypeVar("_Seen")


class RestOntapGateway(OntapGateway):
    """The contract over REST; may be shared by threads, opens nothing when made.

    A write raises Busy if ONTAP's job takes longer than `job_limit_seconds`, or if
    reads do not show the effect EFFECT_LIMIT_SECONDS later.
    """

    def __init__(
        self, account: OntapAccount, *, job_limit_seconds: float = JOB_LIMIT_SECONDS
    ) -> None:
        self._svm = account.svm
        self._ontap = OntapConnection(account, job_limit_seconds=job_limit_seconds)

    def close(self) -> None:
        """Close the pooled connections; the gateway stays usable."""
        self._ontap.close()

    # --- the cluster and the SVM

    def get_cluster(self) -> Cluster:
        return records.cluster(
            self._ontap.get(
                "/cluster", operation="cluster get", query={"fields": "name,version"}
            )
        )

    def check_svm(self) -> None:
        operation = "svm check"
        svm = self._find(
            "/svm/svms",
            operation=operation,
            name=self._svm,
            fields="name,state,nfs.enabled",
        )
        if svm is None:
            raise problem(
                NotFound,
                f"There is no SVM {self._svm}, or our account may not see it.",
                operation=operation,
            )
        if svm.get("state") != "running":
            raise problem(
                Refused, f"The SVM {self._svm} is not running.", operation=operation
            )
        if svm.get("nfs", {}).get("enabled") is False:
            raise problem(
                Refused, f"The SVM {self._svm} does not serve NFS.", operation=operation
            )

    def list_svms(self) -> list[Svm]:
        found = self._ontap.get_records(
            "/svm/svms", operation="svm list", query={"fields": records.SVM_FIELDS}
        )
        return [records.svm(record) for record in found]

    def has_license(self, name: str) -> bool:
        found = self._find(
            "/cluster/licensing/licenses",
            operation="license find",
            name=name,
            fields="name",
        )
        return found is not None

    def get_aggregate(self, name: str) -> Aggregate:
        operation = "aggregate get"
        found = self._find(
            "/storage/aggregates",
            operation=operation,
            name=name,
            fields=records.AGGREGATE_FIELDS,
        )
        if found is None:
            raise problem(
                NotFound, f"There is no aggregate {name}.", operation=operation
            )
        return records.aggregate(found)

    def list_data_lifs(self) -> list[DataLif]:
        operation = "lif list"
        found = self._ontap.get_records(
            "/network/ip/interfaces",
            operation=operation,
            query={
                **self._in_svm(operation),
                "services": "data_nfs",
                "fields": records.LIF_FIELDS,
            },
        )
        return [records.data_lif(record) for record in found]

    def list_directory(
        self, volume_uuid: str, path: str, *, at_most: int
    ) -> list[FileEntry]:
        # Its path is one segment of the URL; in front of nothing there is none.
        below = f"/{quote(path, safe='')}" if path else ""
        page = self._ontap.get(
            f"/storage/volumes/{volume_uuid}/files{below}",
            operation="directory list",
            query={"fields": records.FILE_FIELDS, "max_records": at_most},
        )
        return [records.file_entry(record) for record in page.get("records", ())]

    def list_unfinished_jobs(self) -> list[OntapJob]:
        found = self._ontap.get_records(
            "/cluster/jobs",
            operation="job list",
            query={"state": "queued|running|paused", "fields": records.JOB_FIELDS},
        )
        return [records.ontap_job(record) for record in found]

    def cancel_job(self, uuid: str) -> None:
        try:
            self._ontap.write_at_once(
                "PATCH",
                f"/cluster/jobs/{uuid}",
                operation="job cancel",
                query={"action": "cancel"},
                body={},
            )
        except NotFound:
            return
        except Refused as error:
            if error.remote_code != JOB_HAS_ENDED:
                raise

    # --- volumes

    def find_volume(self, name: str) -> Volume | None:
        found = self._find(
            _VOLUMES,
            operation="volume find",
            name=name,
            fields=records.VOLUME_FIELDS,
            in_svm=True,
        )
        return records.volume(found) if found else None

    def get_volume(self, uuid: str) -> Volume:
        return records.volume(
            self._ontap.get(
                _volume_path(uuid),
                operation="volume get",
                query={"fields": records.VOLUME_FIELDS},
            )
        )

    def list_volumes(self, *, comment_prefix: str = "") -> list[Volume]:
        operation = "volume list"
        query = {**self._in_svm(operation), "fields": records.VOLUME_FIELDS}
        if comment_prefix:
            query["comment"] = f"{exact_name(comment_prefix, operation=operation)}*"
        found = self._ontap.get_records(_VOLUMES, operation=operation, query=query)
        volumes = [records.volume(record) for record in found]
        # ONTAP compares without regard to case.
        return [each for each in volumes if each.comment.startswith(comment_prefix)]

    def list_volume_usage(self) -> list[VolumeUsage]:
        operation = "volume usage list"
        found = self._ontap.get_records(
            _VOLUMES,
            operation=operation,
            query={**self._in_svm(operation), "fields": records.USAGE_FIELDS},
        )
        return [records.volume_usage(record) for record in found]

    def max_volumes(self) -> int | None:
        operation = "svm limit get"
        svm = self._find(
            "/svm/svms", operation=operation, name=self._svm, fields="max_volumes"
        )
        if svm is None:
            raise problem(
                NotFound, f"There is no SVM {self._svm}.", operation=operation
            )
        return records.max_volumes(svm)

    def create_volume(
        self, spec: VolumeSpec, *, ontap_job_started: OntapJobStarted = forget
    ) -> Volume:
        operation = "volume create"
        return _without_what_is_unknown(
            spec.shows_snapshots,
            lambda shows_snapshots: self._create_volume(
                exact_name(spec.name, operation=operation),
                operation=operation,
                body=bodies.volume(
                    dataclasses.replace(spec, shows_snapshots=shows_snapshots),
                    svm=self._svm,
                ),
                ontap_job_started=ontap_job_started,
            ),
        )

    def create_clone(
        self, spec: CloneSpec, *, ontap_job_started: OntapJobStarted = forget
    ) -> Volume:
        operation = "clone create"
        return self._create_volume(
            exact_name(spec.name, operation=operation),
            operation=operation,
            body=bodies.clone(spec, svm=self._svm, operation=operation),
            ontap_job_started=ontap_job_started,
        )

    def set_volume_policies(
        self,
        uuid: str,
        *,
        export_policy: str | None = None,
        root_mode: str | None = None,
        shows_snapshots: bool | None = None,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        operation = "volume policies set"
        wanted = (export_policy, bodies.NO_SNAPSHOT_POLICY)

        def is_set() -> Volume | None:
            volume = self.get_volume(uuid)
            seen = (volume.export_policy, volume.snapshot_policy)
            has_policies = export_policy is None or seen == wanted
            has_mode = root_mode is None or volume.root_mode == root_mode
            return volume if has_policies and has_mode else None

        def patch(shows_snapshots: bool | None) -> None:
            self._patch_volume(
                uuid,
                operation=operation,
                body=bodies.volume_policies(
                    export_policy, root_mode=root_mode, shows_snapshots=shows_snapshots
                ),
                ontap_job_started=ontap_job_started,
            )

        _without_what_is_unknown(shows_snapshots, patch)
        return self._wait_for(is_set, operation=operation)

    def list_showing_snapshots(
        self, *, comment_prefix: str, shows_snapshots: bool
    ) -> list[str]:
        operation = "volume list"
        try:
            found = self._ontap.get_records(
                _VOLUMES,
                operation=operation,
                query={
                    **self._in_svm(operation),
                    "fields": "comment",
                    "comment": f"{exact_name(comment_prefix, operation=operation)}*",
                    bodies.SNAPDIR: str(shows_snapshots).lower(),
                },
            )
        except Refused as refused:
            if refused.remote_code in (UNEXPECTED_ARGUMENT, INVALID_VALUE):
                return []
            raise
        return [
            str(record["uuid"])
            for record in found
            if record.get("comment", "").startswith(comment_prefix)
        ]

    def set_volume_comment(
        self,
        uuid: str,
        *,
        comment: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        operation = "volume comment set"

        def is_set() -> Volume | None:
            volume = self.get_volume(uuid)
            return volume if volume.comment == comment else None

        self._patch_volume(
            uuid,
            operation=operation,
            body={"comment": comment},
            ontap_job_started=ontap_job_started,
        )
        return self._wait_for(is_set, operation=operation)

    def set_volume_size(
        self,
        uuid: str,
        *,
        size_bytes: int,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        operation = "volume size set"

        def is_set() -> Volume | None:
            volume = self.get_volume(uuid)
            is_near = abs(volume.size_bytes - size_bytes) < SIZES_DIFFER_BYTES
            return volume if is_near else None

        self._patch_volume(
            uuid,
            operation=operation,
            body={"size": size_bytes},
            ontap_job_started=ontap_job_started,
        )
        return self._wait_for(is_set, operation=operation)

    def set_max_inodes(
        self,
        uuid: str,
        *,
        max_inodes: int,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        operation = "volume inodes set"

        def is_set() -> Volume | None:
            volume = self.get_volume(uuid)
            # ONTAP rounds up to whole blocks of inodes.
            return volume if (volume.max_inodes or 0) >= max_inodes else None

        self._patch_volume(
            uuid,
            operation=operation,
            body={"files": {"maximum": max_inodes}},
            ontap_job_started=ontap_job_started,
        )
        return self._wait_for(is_set, operation=operation)

    def bring_volume_online(
        self, uuid: str, *, ontap_job_started: OntapJobStarted = forget
    ) -> Volume:
        operation = "volume online"

        def is_online() -> Volume | None:
            volume = self.get_volume(uuid)
            return volume if volume.state == "online" else None

        self._patch_volume(
            uuid,
            operation=operation,
            body={"state": "online"},
            ontap_job_started=ontap_job_started,
        )
        return self._wait_for(is_online, operation=operation)

    def mount_volume(
        self,
        uuid: str,
        *,
        junction_path: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> Volume:
        operation = "volume mount"
        check_junction_path(junction_path, operation=operation)

        def is_mounted() -> Volume | None:
            volume = self.get_volume(uuid)
            return volume if volume.junction_path == junction_path else None

        try:
            self._patch_volume(
                uuid,
                operation=operation,
                body={"nas": {"path": junction_path}},
                ontap_job_started=ontap_job_started,
            )
        except Refused:
            volume = is_mounted()
            if volume is None:
                raise
            return volume
        return self._wait_for(is_mounted, operation=operation)

    def unmount_volume(
        self, uuid: str, *, ontap_job_started: OntapJobStarted = forget
    ) -> None:
        operation = "volume unmount"

        def is_unmounted() -> bool | None:
            try:
                return None if self.get_volume(uuid).junction_path else True
            except NotFound:
                return True

        try:
            self._patch_volume(
                uuid,
                operation=operation,
                body={"nas": {"path": ""}},
                ontap_job_started=ontap_job_started,
            )
        except (NotFound, Refused):
            if is_unmounted():
                return
            raise
        self._wait_for(is_unmounted, operation=operation)

    def delete_volume(
        self, uuid: str, *, force: bool, ontap_job_started: OntapJobStarted = forget
    ) -> None:
        self._delete(
            _volume_path(uuid),
            operation="volume delete",
            query={"force": "true"} if force else {},
            ontap_job_started=ontap_job_started,
        )

    # --- snapshots

    def find_snapshot(self, volume_uuid: str, *, name: str) -> VolumeSnapshot | None:
        operation = "snapshot find"
        found = self._snapshot_records(
            volume_uuid,
            operation=operation,
            query={"name": exact_name(name, operation=operation)},
        )
        return records.snapshot(found[0]) if found else None

    def list_snapshots(self, volume_uuid: str) -> list[VolumeSnapshot]:
        found = self._snapshot_records(volume_uuid, operation="snapshot list", query={})
        snapshots = [records.snapshot(record) for record in found]
        return sorted(snapshots, key=lambda each: each.created_at or _LONG_AGO)

    def create_snapshot(
        self,
        volume_uuid: str,
        *,
        name: str,
        comment: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> VolumeSnapshot:
        operation = "snapshot create"
        self._ontap.write(
            "POST",
            f"{_volume_path(volume_uuid)}/snapshots",
            operation=operation,
            body={"name": exact_name(name, operation=operation), "comment": comment},
            ontap_job_started=ontap_job_started,
        )
        return self._wait_for(
            lambda: self.find_snapshot(volume_uuid, name=name), operation=operation
        )

    def delete_snapshot(
        self,
        volume_uuid: str,
        *,
        snapshot_uuid: str,
        ontap_job_started: OntapJobStarted = forget,
    ) -> None:
        self._delete(
            f"{_volume_path(volume_uuid)}/snapshots/{path_uuid(snapshot_uuid)}",
            operation="snapshot delete",
            query={},
            ontap_job_started=ontap_job_started,
        )

    # --- export policies

    def find_export_policy(self, name: str) -> ExportPolicy | None:
        found = self._find(
            _EXPORT_POLICIES,
            operation="export policy find",
            name=name,
            fields=records.EXPORT_POLICY_FIELDS,
            in_svm=True,
        )
        return records.export_policy(found) if found else None

    def create_export_policy(
        self, name: str, *, rules: tuple[ExportRule, ...]
    ) -> ExportPolicy:
        operation = "export policy create"
        self._ontap.write_at_once(
            "POST",
            _EXPORT_POLICIES,
            operation=operation,
            body={
                "name": exact_name(name, operation=operation),
                "svm": {"name": self._svm},
                "rules": [bodies.export_rule(rule) for rule in rules],
            },
        )
        return self._wait_for(
            lambda: self.find_export_policy(name), operation=operation
        )

    def set_export_rules(
        self, policy_id: int, *, rules: tuple[ExportRule, ...]
    ) -> None:
        self._ontap.write_at_once(
            "PATCH",
            f"{_EXPORT_POLICIES}/{policy_id}",
            operation="export rules set",
            body={"rules": [bodies.export_rule(rule) for rule in rules]},
        )

    # --- what the verbs share

    def _in_svm(self, operation: str) -> dict[str, str]:
        return {"svm.name": exact_name(self._svm, operation=operation)}

    def _find(
        self, path: str, *, operation: str, name: str, fields: str, in_svm: bool = False
    ) -> dict[str, Any] | None:
        query = {"name": exact_name(name, operation=operation), "fields": fields}
        if in_svm:
            query |= self._in_svm(operation)
        found = self._ontap.get_records(path, operation=operation, query=query)
        return found[0] if found else None

    def _snapshot_records(
        self, volume_uuid: str, *, operation: str, query: dict[str, str]
    ) -> list[dict[str, Any]]:
        """Return snapshot records.

        Raises: NotFound (volume).
        """
        path = _volume_path(volume_uuid)
        found = self._ontap.get_records(
            f"{path}/snapshots",
            operation=operation,
            query={**query, "fields": records.SNAPSHOT_FIELDS},
        )
        if not found:  # a query that finds nothing does not say that its volume exists
            self._ontap.get(path, operation=operation, query={"fields": "uuid"})
        return found

    def _create_volume(
        self,
        name: str,
        *,
        operation: str,
        body: dict[str, Any],
        ontap_job_started: OntapJobStarted,
    ) -> Volume:
        def is_online() -> Volume | None:
            volume = self.find_volume(name)
            return volume if volume and volume.state == "online" else None

        self._ontap.write(
            "POST",
            _VOLUMES,
            operation=operation,
            body=body,
            ontap_job_started=ontap_job_started,
        )
        return self._wait_for(is_online, operation=operation)

    def _patch_volume(
        self,
        uuid: str,
        *,
        operation: str,
        body: dict[str, Any],
        ontap_job_started: OntapJobStarted,
    ) -> None:
        self._ontap.write(
            "PATCH",
            _volume_path(uuid),
            operation=operation,
            body=body,
            ontap_job_started=ontap_job_started,
        )

    def _delete(
        self,
        path: str,
        *,
        operation: str,
        query: dict[str, str],
        ontap_job_started: OntapJobStarted,
    ) -> None:
        """Delete the object and wait until it is gone; gone already is success."""

        def is_gone() -> bool | None:
            try:
                self._ontap.get(path, operation=operation, query={"fields": "uuid"})
            except NotFound:
                return True
            return None

        with contextlib.suppress(NotFound):
            self._ontap.write(
                "DELETE",
                path,
                operation=operation,
                query=query,
                ontap_job_started=ontap_job_started,
            )
        self._wait_for(is_gone, operation=operation)

    def _wait_for(self, look: Callable[[], _Seen | None], *, operation: str) -> _Seen:
        """Return what `look` returns once a read shows the effect.

        Raises: Busy.
        """
        seen = look_until(look, limit_seconds=EFFECT_LIMIT_SECONDS)
        if seen is None:
            raise problem(
                Busy,
                "ONTAP has finished, but its effect does not show yet.",
                operation=operation,
            )
        return seen


def _volume_path(uuid: str) -> str:
    return f"{_VOLUMES}/{path_uuid(uuid)}"


def _without_what_is_unknown(
    shows_snapshots: bool | None, ask: Callable[[bool | None], _Seen]
) -> _Seen:
    """Ask once more without the setting where a release has it not (before 9.13.1)."""
    try:
        return ask(shows_snapshots)
    except Refused as refused:
        if shows_snapshots is None or refused.remote_code != UNEXPECTED_ARGUMENT:
            raise
    return ask(None)
