"""How volumes grow, and what they set apart."""

from __future__ import annotations

from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.names import exact_name
from provisioner.gateways.ontap.types import VolumeSettings
from provisioner.gateways.ontap.verbs import VOLUMES, Verbs, volume_path


class VolumeSettingsVerbs(Verbs):
    """Read and change the settings of volumes."""

    def list_volume_settings(self, *, comment_prefix: str) -> dict[str, VolumeSettings]:
        """Return the settings of the SVM's volumes with such a comment, by UUID.

        ONTAP ignores the case of the prefix.
        Source: GET /api/storage/volumes?comment=&fields=autosize,guarantee,space,….
        """
        query = {
            **self._in_svm(),
            "fields": records.SETTINGS_FIELDS,
            "comment": f"{exact_name(comment_prefix)}*",
        }
        found = self._ontap.get_records(VOLUMES, query=query)
        return {record["uuid"]: records.volume_settings(record) for record in found}

    def get_volume_settings(self, uuid: str) -> VolumeSettings:
        """Return the settings of a volume.

        Raises: NotFound.
        Source: GET /api/storage/volumes/{uuid}.
        """
        query = {"fields": records.SETTINGS_FIELDS}
        return records.volume_settings(self._ontap.get(volume_path(uuid), query=query))

    def set_volume_settings(self, uuid: str, wanted: VolumeSettings) -> VolumeSettings:
        """Change settings of a volume, and return all of them. Safe to repeat.

        Raises: NotFound, Refused, OutOfSpace (for guarantee "volume").
        Source: PATCH /api/storage/volumes/{uuid} autosize, space, guarantee, files,
        nas.security_style.
        """
        self._write("PATCH", volume_path(uuid), body=bodies.volume_settings(wanted))

        def changed() -> VolumeSettings | None:
            seen = self.get_volume_settings(uuid)
            return None if wanted.lacking_in(seen) else seen

        return self._wait_for(changed)
