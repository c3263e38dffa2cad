"""The volumes of a sandbox, and the parts of its server on them."""

from __future__ import annotations

from django.db import models

from provisioner.lib.names import underscored
from provisioner.sandboxes.models.sandboxes import Sandbox
from provisioner.sandboxes.models.servers import Role, inner_path_validator
from provisioner.sites.values import ontap_name_validator


class SandboxVolume(models.Model):
    """A volume of the server, its snapshot, and the clone that the sandbox has of it.

    `number` is its place in the order of snapshots. Of a volume that SnapMirror fills,
    `is_replica`, a snapshot is cloned that came with it, `replicated`.
    """

    sandbox = models.ForeignKey(
        Sandbox, on_delete=models.CASCADE, related_name="volumes"
    )
    number = models.PositiveSmallIntegerField()
    source = models.CharField(max_length=203, validators=[ontap_name_validator])
    is_replica = models.BooleanField(default=False)
    replicated = models.CharField(max_length=255, blank=True)
    snapshot_uuid = models.CharField(max_length=36, blank=True)
    clone_uuid = models.CharField(max_length=36, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(
                fields=("sandbox", "source"), name="sandbox_volume_once"
            ),
        )

    def __str__(self) -> str:
        return self.clone_name

    @property
    def clone_name(self) -> str:
        sandbox = self.sandbox
        name = underscored(sandbox.name)
        return f"cy_sandbox_{name}_{sandbox.tag.hex[:6]}_{self.number}"

    @property
    def junction_path(self) -> str:
        return f"/{self.clone_name}"


class SandboxPlace(models.Model):
    """Where a part of the server is in a sandbox, as it was described when it began."""

    volume = models.ForeignKey(
        SandboxVolume, on_delete=models.CASCADE, related_name="places"
    )
    role = models.CharField(max_length=8, choices=Role)
    path = models.CharField(
        max_length=255, blank=True, validators=[inner_path_validator]
    )

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.role} in {self.volume}"
