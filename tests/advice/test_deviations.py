"""What is in use, held against a recommendation."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from provisioner.advice.deviations import (
    Fit,
    Held,
    InUse,
    hold,
    hold_all,
    nfs_version,
    protocols_of,
)
from provisioner.advice.kinds import BLOCK, Criterion, Protocol, Role
from provisioner.advice.recommending import (
    DEFAULT_WEIGHTS,
    ReaderFacts,
    recommend,
    recommend_all,
)

BOTH = (Protocol.NFS3, Protocol.NFS41)


@pytest.mark.parametrize(
    ("fs_type", "options", "protocols"),
    [
        ("xfs", None, BLOCK),
        ("ext2/ext3", ("rw",), BLOCK),
        ("nfs", None, BOTH),
        ("nfs", ("rw",), BOTH),
        ("nfs", ("rw", "vers=3"), (Protocol.NFS3,)),
        ("nfs4", ("vers=4.2",), (Protocol.NFS41,)),
        ("nfs4", ("vers=4.0",), ()),
        ("nfs4", None, (Protocol.NFS41,)),
        ("nfs", ("nfsvers=3",), (Protocol.NFS3,)),
        ("CIFS", None, (Protocol.SMB,)),
        ("tmpfs", None, ()),
        ("", None, ()),
    ],
)
def test_a_filesystem_says_what_it_may_be(
    fs_type: str, options: Collection[str] | None, protocols: tuple[Protocol, ...]
) -> None:
    assert protocols_of(fs_type, options) == protocols


def test_the_version_of_nfs_is_among_the_options() -> None:
    assert nfs_version(("rw", "vers=4.1", "hard")) == "4.1"
    assert nfs_version(("rw", "hard")) == ""


def held(role: Role, *protocols: Protocol) -> Held:
    place = InUse(
        whose="commit", url="/", name="x", role=role, saw="", protocols=protocols
    )
    found = recommend(role, weights=DEFAULT_WEIGHTS, facts=ReaderFacts())
    return hold(place, found)


def test_what_is_recommended_fits() -> None:
    assert held(Role.DEPOTS, Protocol.NFS3).fit == Fit.FITS


def test_what_cannot_be_it_deviates_with_both_totals() -> None:
    found = held(Role.DB, Protocol.NFS3)
    assert found.fit == Fit.DEVIATES
    assert found.sentence == "Use iSCSI: 31 of 51 by your weights, NFSv3 25."


def test_of_several_the_best_is_named() -> None:
    found = held(Role.DEPOTS, *BLOCK)
    assert found.fit == Fit.DEVIATES
    assert "at most 33" in found.sentence


def test_what_may_be_it_is_not_known() -> None:
    found = held(Role.DB, *BLOCK)
    assert found.fit == Fit.UNKNOWN
    assert "Local SSD, Fibre Channel, iSCSI or NVMe over fabrics: look at its host" in (
        found.sentence
    )


def test_what_nothing_is_known_of_is_not_guessed() -> None:
    assert held(Role.DB).fit == Fit.UNKNOWN


def test_what_is_excluded_says_why() -> None:
    found = held(Role.WORKSPACES, Protocol.LOCAL)
    assert found.fit == Fit.DEVIATES
    assert found.sentence.startswith("Use NFSv3. Workspaces are clones")


def test_without_weights_nothing_deviates() -> None:
    none = dict.fromkeys(Criterion, 0)
    found = recommend(Role.DB, weights=none, facts=ReaderFacts())
    place = InUse(whose="c", url="", name="", role=Role.DB, saw="", protocols=BLOCK)
    assert hold(place, found).fit == Fit.UNKNOWN


def test_what_deviates_comes_first() -> None:
    found = {f.role: f for f in recommend_all(DEFAULT_WEIGHTS, ReaderFacts())}
    places = [
        InUse(whose="c", url="", name="", role=Role.DEPOTS, saw="", protocols=(each,))
        for each in (Protocol.NFS3, Protocol.SMB)
    ]
    assert [h.fit for h in hold_all(places, found)] == [Fit.DEVIATES, Fit.FITS]
