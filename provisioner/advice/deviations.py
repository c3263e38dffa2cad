"""What the running installation uses, held against a recommendation.

Pure: a server says a filesystem's type, its host the options of the mount. What these
leave open stays open: a block device may be a local disk or a LUN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from provisioner.advice.kinds import BLOCK, Protocol, Role
from provisioner.advice.recommending import Recommendation

ROLES_OF_PLACES = {
    "P4ROOT": Role.DB,
    "P4JOURNAL": Role.JOURNAL,
    "P4LOG": Role.LOG,
    "TEMP": Role.TEMP,
}
"""The names that p4 diskspace gives a server's own places; others are depots."""

_BLOCK_TYPES = frozenset(
    {"ext2", "ext3", "ext4", "ext2/ext3", "xfs", "btrfs", "zfs", "f2fs", "jfs", "ntfs"}
)
_SMB_TYPES = frozenset({"cifs", "smb", "smb2", "smb3", "smbfs"})
_NFS_VERSIONS = {
    "3": (Protocol.NFS3,),
    "4": (),
    "4.0": (),
    "4.1": (Protocol.NFS41,),
    "4.2": (Protocol.NFS41,),
}


class Fit(StrEnum):
    DEVIATES = "deviates"
    UNKNOWN = "unknown"
    FITS = "fits"


@dataclass(frozen=True, kw_only=True)
class InUse:
    """A place of the running installation: `whose` is a server or a site.

    `saw` says what is known of it; `protocols` are those that it may be, none if
    nothing says so.
    """

    whose: str
    url: str
    name: str
    role: Role
    saw: str
    protocols: tuple[Protocol, ...]


@dataclass(frozen=True, kw_only=True)
class Held:
    """A place with what the recommendation says of it."""

    place: InUse
    fit: Fit
    sentence: str


def protocols_of(fs_type: str, options: Collection[str] | None) -> tuple[Protocol, ...]:
    """Return what a filesystem may be reached over; none if nothing says so.

    `options` are those of its mount, None if they are not known.
    """
    kind = fs_type.lower()
    if kind.startswith("nfs"):
        version = nfs_version(options or ())
        if version:
            return _NFS_VERSIONS.get(version, ())
        return (Protocol.NFS41,) if kind == "nfs4" else (Protocol.NFS3, Protocol.NFS41)
    if kind in _SMB_TYPES:
        return (Protocol.SMB,)
    return BLOCK if kind in _BLOCK_TYPES else ()


def nfs_version(options: Iterable[str]) -> str:
    """Return the version of NFS that the options of a mount name, "" if none does."""
    for option in options:
        name, _, value = option.partition("=")
        if name in ("vers", "nfsvers"):
            return value
    return ""


def hold(place: InUse, found: Recommendation) -> Held:
    """Hold a place against the recommendation for its role."""
    best = found.best
    if best is None:
        return Held(place=place, fit=Fit.UNKNOWN, sentence="No weight counts here.")
    label = best.protocol.label
    if not place.protocols:
        return Held(
            place=place,
            fit=Fit.UNKNOWN,
            sentence=f"Recommended is {label}. What this is, nothing says.",
        )
    if place.protocols == (best.protocol,):
        return Held(place=place, fit=Fit.FITS, sentence=f"{label} is recommended.")
    may_be = _either([each.label for each in place.protocols])
    if best.protocol in place.protocols:
        return Held(
            place=place,
            fit=Fit.UNKNOWN,
            sentence=f"Recommended is {label}. This may be {may_be}: look at its host.",
        )
    theirs = [found.rated(each) for each in place.protocols]
    if all(each.excluded for each in theirs):
        [why, *_] = [each.excluded.text for each in theirs if each.excluded]
        sentence = f"Use {label}. {why}"
    else:
        most = max(each.low for each in theirs if not each.excluded)
        sentence = (
            f"Use {label}: {best.total_text} of {found.most} by your weights, {may_be} "
            f"{'at most ' * (len(theirs) > 1)}{most}."
        )
    return Held(place=place, fit=Fit.DEVIATES, sentence=sentence)


def _either(labels: Sequence[str]) -> str:
    *others, last = labels
    return f"{', '.join(others)} or {last}" if others else last


def hold_all(
    places: Iterable[InUse], found: Mapping[Role, Recommendation]
) -> list[Held]:
    """Hold all places against the recommendations: what deviates first."""
    held = [hold(place, found[place.role]) for place in places]
    order = list(Fit)
    return sorted(held, key=lambda one: order.index(one.fit))
