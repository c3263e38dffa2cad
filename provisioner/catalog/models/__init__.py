"""The models of this feature, with their constraints."""

from __future__ import annotations

from provisioner.catalog.models.freshness import (
    RefreshPolicy,
    RefreshSwitch,
    ServerWatch,
    SubmittedChange,
    TemplateWatch,
)
from provisioner.catalog.models.snapshots import (
    AT_LEAST,
    Quality,
    Snapshot,
    SnapshotQuerySet,
    reference_among,
    references_of,
    snapshot_is_there,
)
from provisioner.catalog.models.templates import (
    MOVING_TEMPLATES,
    BuildParameters,
    LineEnd,
    PinnedTemplate,
    Template,
    TemplateCheck,
    TemplateOperation,
    VolumeOperation,
)
from provisioner.catalog.models.volume_policies import VOLUME_SETTINGS, VolumePolicy

__all__ = [
    "AT_LEAST",
    "MOVING_TEMPLATES",
    "VOLUME_SETTINGS",
    "BuildParameters",
    "LineEnd",
    "PinnedTemplate",
    "Quality",
    "RefreshPolicy",
    "RefreshSwitch",
    "ServerWatch",
    "Snapshot",
    "SnapshotQuerySet",
    "SubmittedChange",
    "Template",
    "TemplateCheck",
    "TemplateOperation",
    "TemplateWatch",
    "VolumeOperation",
    "VolumePolicy",
    "reference_among",
    "references_of",
    "snapshot_is_there",
]
