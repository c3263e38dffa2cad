"""Figures that others have published, to put a run beside them."""

from __future__ import annotations

from dataclasses import dataclass

FA_420 = (
    "Pure Storage FlashArray Benchmarking, Perforce Consulting, April 2014: FA-420, "
    "p4d 2014.1, 24 cores, 8 Gb/s Fibre Channel, reference01"
)
PAM = (
    "Perforce Benchmark with PAM over NFS, FCP and iSCSI, NetApp 2008: FAS 3070, "
    "ext3 over Fibre Channel"
)
DOCS = "Results Analysis of the browse benchmark: an example of its output, 2012"


@dataclass(frozen=True, kw_only=True)
class Published:
    """A figure of a profile as published, from the lowest to the highest."""

    profile: str
    figure: str
    low: float
    high: float
    source: str


PUBLISHED = (
    Published(
        profile="branchsubmit",
        figure="commit_rate",
        low=15_024,
        high=21_387,
        source=FA_420,
    ),
    Published(profile="browse", figure="elapsed", low=298, high=668, source=FA_420),
    Published(
        profile="branchsubmit",
        figure="commit_rate",
        low=13_500,
        high=13_500,
        source=PAM,
    ),
    Published(profile="branchsubmit", figure="elapsed", low=11, high=11, source=PAM),
    Published(profile="browse", figure="elapsed", low=101, high=101, source=DOCS),
    Published(
        profile="browse", figure="max_fstat", low=11_151, high=11_151, source=DOCS
    ),
    Published(
        profile="browse", figure="max_filelog", low=1_011, high=1_011, source=DOCS
    ),
)

REFERENCE_FILES = 70_000
REFERENCE_CHILDREN = 64
REFERENCE_BROWSES = 65_536


def differences(
    *, profile: str, files: int, children: int, browses: int, is_cold: bool
) -> list[str]:
    """Return why a run cannot be compared with what is published, as sentences."""
    said = [
        "The published ones measured reference01: 25,200,000 files and 72,625,000 "
        "revisions of metadata. This run made files of its own, so its tables are "
        "much smaller.",
        "Server, network and storage are others, and so is the release of p4d.",
    ]
    if profile == "branchsubmit":
        if files != REFERENCE_FILES:
            said.append(
                f"A change of {files:,} files was submitted; //depot/main/0... of "
                f"reference01 has {REFERENCE_FILES:,}."
            )
        said.append(
            "The sources do not say how they compute the commit rate. Here it is files "
            "by the longest hold of a write lock of dm-CommitSubmit."
        )
    if profile == "browse":
        if children != REFERENCE_CHILDREN or browses != REFERENCE_BROWSES:
            said.append(
                f"{children} children made {browses:,} browses; in the benchmark "
                f"{REFERENCE_CHILDREN} make {REFERENCE_BROWSES:,}."
            )
        said.append("The sources do not say which commands a browse gives.")
    said.append("The caches were cold." if is_cold else "The caches were warm.")
    return said
