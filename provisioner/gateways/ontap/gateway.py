"""One SVM of one ONTAP cluster: every verb that Cloneyard uses.

Every method may raise Unreachable (no answer in time; the effect may have happened),
Busy (ONTAP asks to come back later) and AuthFailed. Each docstring lists only what else
it raises.

A write returns when ONTAP's own job has ended and a read shows the effect.
`recording_jobs` lets the caller record before that a job that takes longer than an
answer.
"""

from __future__ import annotations

from provisioner.gateways.ontap.consistency_groups import ConsistencyGroups
from provisioner.gateways.ontap.deduplication import Deduplication
from provisioner.gateways.ontap.exports import ExportPolicies
from provisioner.gateways.ontap.mirrors import Mirrors
from provisioner.gateways.ontap.qos_policies import QosPolicies
from provisioner.gateways.ontap.snapshot_policies import SnapshotPolicies
from provisioner.gateways.ontap.snapshots import Snapshots
from provisioner.gateways.ontap.system import System
from provisioner.gateways.ontap.volume_moves import VolumeMoves
from provisioner.gateways.ontap.volume_settings import VolumeSettingsVerbs


class OntapGateway(
    System,
    SnapshotPolicies,
    VolumeMoves,
    VolumeSettingsVerbs,
    Snapshots,
    ExportPolicies,
    QosPolicies,
    Mirrors,
    Deduplication,
    ConsistencyGroups,
):
    """One SVM of one ONTAP cluster."""
