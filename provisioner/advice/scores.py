"""The scores: what each protocol is worth by each criterion, and who says so.

The scale is Perforce's own: bad (0), fair (1), good (2), best (3). What nobody knows
has no value, and counts as anything between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from provisioner.advice.kinds import NAS, SAN, Criterion, Doubt, Protocol, Role
from provisioner.advice.sources import (
    FILESYSTEM,
    GROUPS,
    ID_MAPPING,
    MULTI_SITE,
    NVME_HOSTS,
    OURS,
    PLANNING,
    Source,
)

BAD, FAIR, GOOD, BEST = range(4)
WORDS = ("bad", "fair", "good", "best")


@dataclass(frozen=True, kw_only=True)
class Score:
    """`value` is None if it is not known; `why` says what it goes by."""

    value: int | None
    why: str
    doubt: Doubt
    source: Source | None = None

    @property
    def word(self) -> str:
        return "not known" if self.value is None else WORDS[self.value]

    @property
    def low(self) -> int:
        return BAD if self.value is None else self.value

    @property
    def high(self) -> int:
        return BEST if self.value is None else self.value


def _stated(value: int, source: Source, why: str) -> Score:
    return Score(value=value, source=source, why=why, doubt=Doubt.STATED)


def _inferred(value: int, source: Source, why: str) -> Score:
    return Score(value=value, source=source, why=why, doubt=Doubt.INFERRED)


def _unverified(value: int, why: str) -> Score:
    return Score(value=value, why=why, doubt=Doubt.UNVERIFIED)


APPLIES: Mapping[Role, tuple[Criterion, ...]] = {
    Role.DB: tuple(c for c in Criterion if c != Criterion.ACCESS),
    Role.JOURNAL: tuple(c for c in Criterion if c != Criterion.ACCESS),
    Role.LOG: (Criterion.PERFORMANCE, Criterion.MANAGEABILITY, Criterion.COST),
    Role.TEMP: (Criterion.PERFORMANCE, Criterion.MANAGEABILITY, Criterion.COST),
    Role.DEPOTS: tuple(Criterion),
    Role.WORKSPACES: tuple(Criterion),
}
"""Which criteria count for a role.

Only p4d opens its database, journal, log and temporary files, so access of others does
not count there. Log and temporary files need no backup (Source: LAYOUT, for the log).
"""

# --- performance, which depends on the role

_LOCAL_DB = "“Best: DAS RAID 10”, and little latency is asked for"
_SAN_DB = (
    "An old table says fair; today's guide recommends a local disk or a SAN of low "
    "latency, and NetApp ran its own server that way"
)
_NAS_DB = "“Bad or unsupported: NAS”; today's guide: locks over NFS are slow"
_SLOWER_JOURNAL = "A journal over NFS makes all operations slower"

PERFORMANCE: Mapping[Role, Mapping[Protocol, Score]] = {
    Role.DB: {
        Protocol.LOCAL: _stated(BEST, PLANNING, _LOCAL_DB),
        Protocol.FC: _inferred(GOOD, FILESYSTEM, _SAN_DB),
        Protocol.ISCSI: _inferred(GOOD, FILESYSTEM, f"{_SAN_DB}, over Fibre Channel"),
        Protocol.NVME: _inferred(
            GOOD,
            FILESYSTEM,
            "A SAN of low latency; nobody has published p4d over NVMe",
        ),
        **{each: _stated(BAD, PLANNING, _NAS_DB) for each in NAS},
    },
    Role.JOURNAL: {
        Protocol.LOCAL: _stated(BEST, PLANNING, "“Best: DAS RAID 10”, of its own"),
        **{each: _inferred(GOOD, FILESYSTEM, _SAN_DB) for each in SAN},
        Protocol.NFS3: _stated(BAD, FILESYSTEM, _SLOWER_JOURNAL),
        Protocol.NFS41: _stated(BAD, FILESYSTEM, _SLOWER_JOURNAL),
        Protocol.SMB: _stated(BAD, PLANNING, "“Bad or unsupported: NAS”"),
    },
    Role.LOG: {
        Protocol.LOCAL: _unverified(
            BEST, "Each command writes lines to it, with no network in between"
        ),
        **{
            each: _inferred(GOOD, MULTI_SITE, "SAN for database, journal and log")
            for each in SAN
        },
        **{
            each: _inferred(FAIR, FILESYSTEM, "Slower than local, but without locks")
            for each in NAS
        },
    },
    Role.DEPOTS: {
        Protocol.LOCAL: _stated(BEST, PLANNING, "“Best: separate DAS”"),
        **{each: _stated(GOOD, PLANNING, "“Good: SAN”") for each in SAN},
        **{each: _stated(FAIR, PLANNING, "“Fair: NAS”") for each in NAS},
    },
    Role.TEMP: {
        Protocol.LOCAL: _unverified(BEST, "The nearest disk is the fastest"),
        **{each: _unverified(GOOD, "A network is between") for each in SAN},
        **{
            each: _unverified(FAIR, "A network and a file protocol are in between")
            for each in NAS
        },
    },
    Role.WORKSPACES: {
        Protocol.LOCAL: _unverified(BEST, "The nearest disk is the fastest"),
        **{each: _unverified(GOOD, "A network is between") for each in SAN},
        Protocol.NFS3: _unverified(GOOD, "What most clones are mounted with"),
        Protocol.NFS41: _unverified(GOOD, "No published run compares it with NFSv3"),
        Protocol.SMB: _unverified(FAIR, "Many small files cost more round trips"),
    },
}

# --- what depends on the protocol alone

_ONE_HOST = "One host has it"
_LUN_OF_ONE = "A LUN belongs to one host, unless a cluster filesystem shares it"
_BOTH = "ONTAP serves one volume over NFS and SMB at once"
_MULTIPATH = "LUN, multipath and a filesystem of the host on top"
_SANDBOXES = "Snapshots, also of several volumes, and Cloneyard's sandboxes of them"
_ETHERNET = "Uses the Ethernet that is there"

GENERAL: Mapping[Criterion, Mapping[Protocol, Score]] = {
    Criterion.ACCESS: {
        Protocol.LOCAL: _unverified(BAD, _ONE_HOST),
        **{each: _unverified(FAIR, _LUN_OF_ONE) for each in SAN},
        **{each: _unverified(BEST, _BOTH) for each in NAS},
    },
    Criterion.MANAGEABILITY: {
        Protocol.LOCAL: _unverified(FAIR, "Each host by hand; full means a new disk"),
        Protocol.FC: _unverified(FAIR, f"{_MULTIPATH}; zones in the fabric"),
        Protocol.ISCSI: _unverified(FAIR, _MULTIPATH),
        Protocol.NVME: _inferred(
            FAIR, NVME_HOSTS, f"{_MULTIPATH}; what works depends on the host's release"
        ),
        Protocol.NFS3: _unverified(BEST, "A volume grows, and its hosts see it"),
        Protocol.NFS41: _inferred(
            GOOD, ID_MAPPING, "As NFSv3, and names of users have to map everywhere"
        ),
        Protocol.SMB: _unverified(GOOD, "As NFS, and a directory service for accounts"),
    },
    Criterion.COST: {
        Protocol.LOCAL: Score(
            value=None,
            why="Depends on the disks that the host has or needs",
            doubt=Doubt.UNKNOWN,
        ),
        Protocol.FC: _inferred(
            BAD, MULTI_SITE, "Adapters in each host, and redundant fabrics"
        ),
        Protocol.ISCSI: _unverified(GOOD, _ETHERNET),
        Protocol.NVME: _unverified(
            FAIR, "NVMe/TCP goes over Ethernet, NVMe/FC needs a fabric"
        ),
        **{each: _unverified(GOOD, _ETHERNET) for each in NAS},
    },
    Criterion.BACKUP: {
        Protocol.LOCAL: _inferred(
            BAD, OURS, "No snapshots in ONTAP: checkpoints alone, made by production"
        ),
        **{
            each: _inferred(
                GOOD,
                GROUPS,
                "Snapshots, also of several volumes at one moment, but Cloneyard makes "
                "no sandbox or checkpoint of a LUN",
            )
            for each in SAN
        },
        Protocol.NFS3: _inferred(BEST, GROUPS, _SANDBOXES),
        Protocol.NFS41: _inferred(BEST, GROUPS, _SANDBOXES),
        Protocol.SMB: _inferred(
            GOOD, GROUPS, "Snapshots; Cloneyard's hosts mount over NFS alone"
        ),
    },
}


def score_of(role: Role, protocol: Protocol, criterion: Criterion) -> Score:
    """Return the score of a protocol for a role by one criterion."""
    if criterion == Criterion.PERFORMANCE:
        return PERFORMANCE[role][protocol]
    return GENERAL[criterion][protocol]
