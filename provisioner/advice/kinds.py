"""What storage is chosen for, over which protocol, and by what."""

from __future__ import annotations

from enum import Enum


class Named(Enum):
    """A value with the label that people read."""

    def __init__(self, code: str, label: str) -> None:
        self.code = code
        self.label = label


class Role(Named):
    """What is stored."""

    DB = ("db", "Database (db.*)")
    JOURNAL = ("journal", "Journal")
    LOG = ("log", "Server log")
    DEPOTS = ("depots", "Archives of depots")
    TEMP = ("temp", "Temporary files (P4TMP)")
    WORKSPACES = ("workspaces", "Workspaces")


class Protocol(Named):
    """How a host reaches storage. LOCAL is a disk of its own."""

    LOCAL = ("local", "Local SSD")
    FC = ("fc", "Fibre Channel")
    ISCSI = ("iscsi", "iSCSI")
    NVME = ("nvme", "NVMe over fabrics")
    NFS3 = ("nfs3", "NFSv3")
    NFS41 = ("nfs41", "NFSv4.1")
    SMB = ("smb", "SMB")


SAN = (Protocol.FC, Protocol.ISCSI, Protocol.NVME)
NAS = (Protocol.NFS3, Protocol.NFS41, Protocol.SMB)
BLOCK = (Protocol.LOCAL, *SAN)


class Criterion(Named):
    """What a protocol is scored by."""

    PERFORMANCE = ("performance", "Performance")
    ACCESS = ("access", "Heterogeneous access")
    MANAGEABILITY = ("manageability", "Manageability")
    COST = ("cost", "Cost")
    BACKUP = ("backup", "Backup")


class Doubt(Named):
    """How far a score is what its source says."""

    STATED = ("stated", "stated")
    INFERRED = ("inferred", "inferred")
    UNVERIFIED = ("unverified", "our judgment")
    UNKNOWN = ("unknown", "not known")
