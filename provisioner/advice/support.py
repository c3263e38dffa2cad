"""The support matrix: which releases are known good, too old, or not known.

Pure rules over data that the gateways have, each with its source. A release that no
source names is not known, and never taken for good because it is new.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from provisioner.advice.deviations import nfs_version
from provisioner.gateways.hosts import kernels
from provisioner.gateways.hosts.mount_options import REFUSED
from provisioner.gateways.hosts.trees.native import OLDEST_LINUX
from provisioner.gateways.ontap.releases import (
    END_OF_FULL_SUPPORT,
    GROUPS_OF_NAS_SINCE,
    HIDES_SNAPSHOTS_SINCE,
    POLICIES_OVER_REST,
    REST_SINCE,
    end_of_limited_support,
    release_of,
    release_text,
)
from provisioner.gateways.perforce.releases import (
    maintenance_ends,
    p4d_release_in,
    support_ends,
)
from provisioner.insight.rules import EASY_UPGRADES

ONTAP_DATES = (
    "NetApp, ONTAP Software Version Support "
    "(mysupport.netapp.com/site/info/version-support), as of August 2026"
)
ONTAP_FEATURES = "ONTAP REST API reference"
P4D_DATES = (
    "Perforce, Helix Core APIs End-of-Life Schedule "
    "(perforce.com/maintenance-support/helix-core-apis-maintenance-support)"
)
KERNEL_DATES = "kernel.org, Active kernel releases, as of August 2026"
NFS_OPTIONS = "nfs(5), mount(8); NetApp, TR-4164, for nocto and local_lock=all"

_LACKS = (
    (POLICIES_OVER_REST, "mirrors: it cannot create their policies"),
    (GROUPS_OF_NAS_SINCE, "sandboxes of several volumes at one moment"),
    (HIDES_SNAPSHOTS_SINCE, "clones without a visible .snapshot"),
)


class Status(StrEnum):
    TOO_OLD = "too_old"
    UNSAFE = "unsafe"
    AGING = "aging"
    UNKNOWN = "unknown"
    GOOD = "good"


@dataclass(frozen=True, kw_only=True)
class Support:
    """What the rules say of a release: `says` is why, `do` what to do about it."""

    status: Status
    says: str
    do: str = ""
    source: str = ""


def worst(found: Sequence[Support]) -> Support:
    """Return the one that needs most attention, the first of several."""
    order = list(Status)
    return min(found, key=lambda one: order.index(one.status))


# --- ONTAP


def ontap_support(version: str, *, today: dt.date) -> Support:
    """Judge a release of ONTAP, such as "9.16.1P4"."""
    release = release_of(version)
    if release is None:
        return Support(
            status=Status.UNKNOWN,
            says="Its release was not read yet."
            if not version
            else f"“{version}” is not understood.",
            do="A worker that reaches ONTAP measures the site every minute.",
        )
    if release < REST_SINCE:
        return Support(
            status=Status.TOO_OLD,
            says=f"There is no REST API before {release_text(REST_SINCE)}.",
            do="Upgrade: Cloneyard cannot work with it.",
            source=ONTAP_FEATURES,
        )
    lacks = [what for since, what in _LACKS if release < since]
    without = f" It lacks {', and '.join(lacks)}." if lacks else ""
    full, limited = END_OF_FULL_SUPPORT.get(release), end_of_limited_support(release)
    if full is None or limited is None:
        if release < min(END_OF_FULL_SUPPORT):
            return Support(
                status=Status.TOO_OLD,
                says=f"NetApp's support has ended.{without}",
                do=f"Upgrade to {_newest_supported(today)}.",
                source=ONTAP_DATES,
            )
        return Support(
            status=Status.UNKNOWN,
            says=f"No source that we read has its dates.{without}",
            do="Ask NetApp, or whoever runs it for you, until when it is supported.",
            source=ONTAP_DATES,
        )
    if today > limited:
        status, says = Status.TOO_OLD, f"NetApp's support ended on {limited}."
    elif today > full:
        status = Status.AGING
        says = f"No updates since {full}; NetApp answers questions until {limited}."
    else:
        status, says = Status.GOOD, f"NetApp updates it until {full}."
    do = "" if status == Status.GOOD else f"Upgrade to {_newest_supported(today)}."
    return Support(status=status, says=says + without, do=do, source=ONTAP_DATES)


def _newest_supported(today: dt.date) -> str:
    supported = [r for r, end in END_OF_FULL_SUPPORT.items() if end >= today]
    if not supported:
        return "a release that NetApp updates"
    return f"{release_text(min(supported))} or newer"


# --- p4d


def p4d_support(version: str, *, today: dt.date) -> Support:
    """Judge a release of p4d by what a server says of itself."""
    release = p4d_release_in(version)
    if not release:
        return Support(
            status=Status.UNKNOWN,
            says="Its release was not read yet."
            if not version
            else f"“{version}” names no release of p4d.",
            do="Its configuration is read once a day, with super or operator rights.",
        )
    year, number = map(int, release.split("."))
    if (year, number) < EASY_UPGRADES:
        return Support(
            status=Status.TOO_OLD,
            says="Support has ended, and releases before 2019.1 need special steps.",
            do="Upgrade. Rehearse it in a sandbox first.",
            source=P4D_DATES,
        )
    _, supported = support_ends(release)
    if today > supported:
        return Support(
            status=Status.TOO_OLD,
            says=f"Perforce's support ended by {supported}.",
            do="Upgrade. Rehearse it in a sandbox first.",
            source=P4D_DATES,
        )
    earliest, latest = maintenance_ends(release)
    if today > latest:
        return Support(
            status=Status.AGING,
            says=f"No updates since {latest} at the latest: a release gets them for "
            "two years.",
            do="Upgrade. Rehearse it in a sandbox first.",
            source=P4D_DATES,
        )
    if today >= earliest and earliest != latest:
        return Support(
            status=Status.UNKNOWN,
            says=f"Its updates end between {earliest} and {latest}, two years after "
            "it came out. The schedule that we read ends before it.",
            do="Look at Perforce's schedule.",
            source=P4D_DATES,
        )
    when = f"until {latest}" if earliest == latest else f"at least until {earliest}"
    return Support(
        status=Status.GOOD, says=f"Perforce updates it {when}.", source=P4D_DATES
    )


# --- Linux


def kernel_support(release: str, *, today: dt.date) -> Support:
    """Judge the kernel of a host, as `uname -r` names it."""
    series = kernels.series_of(release)
    if series is None:
        return Support(
            status=Status.UNKNOWN,
            says="Its worker did not report it."
            if not release
            else "It is not Linux's.",
            do="Restart the worker: it reports that when it starts."
            if not release
            else "",
        )
    slow = (
        f" Before {OLDEST_LINUX[0]}.{OLDEST_LINUX[1]} Python alone walks trees, "
        "which is slower."
        if series < OLDEST_LINUX
        else ""
    )
    end = kernels.END_OF_SERIES.get(series)
    is_plain = kernels.is_of_kernel_org(release)
    by_others = "" if is_plain else "; whoever built this one has to take the fixes"
    if end is not None and today <= end:
        return Support(
            status=Status.GOOD,
            says=f"kernel.org fixes its series until {end}{by_others}.{slow}",
            source=KERNEL_DATES,
        )
    if not is_plain:
        return Support(
            status=Status.UNKNOWN,
            says=f"Others built it: their fixes of NFS are not in its number.{slow}",
            do="Look at when the distribution's support of it ends.",
            source=KERNEL_DATES,
        )
    if series > max(kernels.END_OF_SERIES):
        return Support(
            status=Status.UNKNOWN,
            says="A series without long-term support, or newer than our source.",
            do="Use a long-term series.",
            source=KERNEL_DATES,
        )
    return Support(
        status=Status.TOO_OLD,
        says=f"kernel.org no longer fixes its series.{slow}",
        do="Use a long-term series.",
        source=KERNEL_DATES,
    )


# --- NFS


def nfs_support(options: Iterable[str]) -> Support:
    """Judge how workspaces are mounted, by the options of the mount."""
    options = tuple(options)
    refused = [o for o in options if o in REFUSED]
    if refused:
        return Support(
            status=Status.UNSAFE,
            says=f"{REFUSED[refused[0]]}",
            do=f"Mount it without {' and '.join(refused)}.",
            source=NFS_OPTIONS,
        )
    version = nfs_version(options)
    if not version:
        return Support(
            status=Status.UNKNOWN,
            says="Neither the site's mount options nor a worker's host names it.",
            do="Name it in the site's mount options, such as vers=3.",
            source=NFS_OPTIONS,
        )
    if version.startswith("2"):
        return Support(
            status=Status.TOO_OLD,
            says="ONTAP 9 serves no NFSv2.",
            do="Mount it with vers=3.",
            source=NFS_OPTIONS,
        )
    if version in ("4", "4.0"):
        return Support(
            status=Status.AGING,
            says="NFSv4.0 has no sessions: a repeated request may be done twice.",
            do="Mount it with vers=4.1, or vers=3.",
            source="RFC 8881, section 2.10 (sessions, exactly-once semantics)",
        )
    if version == "3":
        return Support(
            status=Status.GOOD,
            says="Every ONTAP serves it, and NetApp's report on Perforce used it. "
            "Locks take lockd and statd on hosts.",
            source=NFS_OPTIONS,
        )
    if version in ("4.1", "4.2"):
        return Support(
            status=Status.GOOD,
            says="Locks are part of the protocol. Names of users have to map the same "
            "on hosts and SVM, or files belong to nobody.",
            source=NFS_OPTIONS,
        )
    return Support(status=Status.UNKNOWN, says=f"NFS {version} is not known.")
