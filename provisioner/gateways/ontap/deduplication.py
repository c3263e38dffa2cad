"""Deduplication of volumes in the background, and what it and others have saved."""

from __future__ import annotations

from typing import Any

from provisioner.gateways.errors import NotFound
from provisioner.gateways.ontap import records
from provisioner.gateways.ontap.names import exact_name
from provisioner.gateways.ontap.types import EfficiencyPolicy, VolumeEfficiency
from provisioner.gateways.ontap.verbs import VOLUMES, Verbs, volume_path

_POLICIES = "/storage/volume-efficiency-policies"


class Deduplication(Verbs):
    """Start and stop the scanner for duplicate blocks, or let ONTAP do so."""

    def list_volume_efficiency(self) -> list[VolumeEfficiency]:
        """Return the state and savings of each volume of the SVM.

        ONTAP answers page by page, so it takes few requests even for many volumes.

        Source: GET /api/storage/volumes?fields=space,efficiency.
        """
        found = self._ontap.get_records(
            VOLUMES, query={**self._in_svm(), "fields": records.EFFICIENCY_FIELDS}
        )
        return [records.volume_efficiency(record) for record in found]

    def get_volume_efficiency(self, uuid: str) -> VolumeEfficiency:
        """Return the state and savings of a volume.

        Raises: NotFound.
        Source: GET /api/storage/volumes/{uuid}?fields=space,efficiency.
        """
        query = {"fields": records.EFFICIENCY_FIELDS}
        return records.volume_efficiency(
            self._ontap.get(volume_path(uuid), query=query)
        )

    def start_deduplication(self, uuid: str, *, scans_all: bool) -> None:
        """Start the scanner of a volume, unless it runs. Safe to repeat.

        It goes on in ONTAP until `list_volume_efficiency` says that it is idle. With
        `scans_all` it reads all blocks, otherwise those written since its last run. A
        volume that nothing deduplicates yet is set to be so in the background.

        Raises: NotFound, Refused (offline, a mirror's volume, an inline-only policy).
        Source: PATCH /api/storage/volumes/{uuid} efficiency.scanner.state.
        """
        seen = self.get_volume_efficiency(uuid)
        if seen.is_scanning:
            return
        scanner: dict[str, Any] = {"state": "active"}
        if scans_all:
            scanner |= {"scan_old_data": True, "dedupe": True}
        efficiency: dict[str, Any] = {"scanner": scanner}
        if not seen.is_enabled:
            efficiency["dedupe"] = "background"
        self._write("PATCH", volume_path(uuid), body={"efficiency": efficiency})

    def stop_deduplication(self, uuid: str) -> VolumeEfficiency | None:
        """Stop the scanner of a volume, if it runs. Safe to repeat.

        Blocks that are shared by then stay so. None: there is no such volume.

        Raises: Refused.
        Source: PATCH /api/storage/volumes/{uuid} efficiency.scanner.state.
        """

        def stopped() -> VolumeEfficiency | None:
            seen = self.get_volume_efficiency(uuid)
            return None if seen.is_scanning else seen

        try:
            if (seen := stopped()) is not None:
                return seen
            body = {"efficiency": {"scanner": {"state": "idle"}}}
            self._write("PATCH", volume_path(uuid), body=body)
            return self._wait_for(stopped)
        except NotFound:
            return None

    def list_cron_schedules(self) -> dict[str, str]:
        """Return the cluster's schedules by name, as five fields of cron.

        None of them if the cluster is in another time zone than UTC.

        Raises: Refused (our account may not ask).
        Source: GET /api/cluster/schedules, GET /api/cluster timezone.
        """
        cluster = self._ontap.get("/cluster", query={"fields": "timezone"})
        if cluster.get("timezone", {}).get("name") not in ("Etc/UTC", "UTC"):
            return {}
        found = self._ontap.get_records(
            "/cluster/schedules", query={"type": "cron", "fields": "name,cron"}
        )
        return {record["name"]: records.cron_of(record) for record in found}

    def ensure_efficiency_policy(self, policy: EfficiencyPolicy) -> None:
        """Create the policy, or make it equal to this one. Safe to repeat.

        Its runs give way to clients.

        Raises: NotFound (the schedule), Refused (our account may not).
        Source: POST, PATCH /api/storage/volume-efficiency-policies.
        """
        wanted: dict[str, Any] = {
            "type": "scheduled",
            "schedule": {"name": policy.schedule},
            "duration": policy.hours,
            "qos_policy": "background",
            "enabled": True,
        }
        fields = f"uuid,{','.join(wanted)}"
        found = self._find(_POLICIES, name=policy.name, fields=fields, in_svm=True)
        if found is None:
            body = {"name": exact_name(policy.name), "svm": {"name": self._svm}}
            self._write("POST", _POLICIES, body=body | wanted)
        elif any(found.get(name) != value for name, value in wanted.items()):
            self._write("PATCH", f"{_POLICIES}/{found['uuid']}", body=wanted)

    def set_efficiency_policy(self, uuid: str, *, name: str) -> None:
        """Let a policy decide when a volume is deduplicated, "" for none.

        Safe to repeat.

        Raises: NotFound, Refused.
        Source: PATCH /api/storage/volumes/{uuid} efficiency.policy.name.
        """
        seen = self.get_volume_efficiency(uuid)
        efficiency: dict[str, Any] = {}
        if seen.policy != name:
            efficiency["policy"] = {"name": name or "none"}
        if name and not seen.is_enabled:
            efficiency["dedupe"] = "background"
        if efficiency:
            self._write("PATCH", volume_path(uuid), body={"efficiency": efficiency})
