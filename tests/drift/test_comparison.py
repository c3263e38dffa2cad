"""The comparison alone: whatever is there, only what is ours is judged."""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from provisioner.catalog.models import Snapshot, VolumePolicy
from provisioner.drift import repairs
from provisioner.drift.comparison.facts import (
    ClientWork,
    Known,
    KnownJob,
    KnownSnapshot,
    KnownTree,
    SeenPerforce,
    SeenStorage,
    Wanted,
    tag_of_client,
    tag_of_volume,
)
from provisioner.drift.comparison.perforce import compare_perforce
from provisioner.drift.comparison.previews import preview
from provisioner.drift.comparison.storage import compare_storage
from provisioner.drift.comparison.wanted import NOTHING, settings_wanted
from provisioner.drift.models import Finding
from provisioner.gateways.ontap.types import (
    CloneParent,
    OntapJob,
    Volume,
    VolumeSettings,
    VolumeSnapshot,
    most_inodes,
)
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory

Kind, Action = Finding.Kind, Finding.Action
TAGS = [str(uuid.UUID(int=number << 104)) for number in range(1, 5)]
PARENT = "cy_main_t000000"
HOUR = dt.timedelta(hours=1)


def volume(name: str, comment: str, **fields: object) -> Volume:
    base = Volume(
        uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        name=name,
        state="online",
        comment=comment,
        size_bytes=1,
        junction_path="",
        export_policy="",
        snapshot_policy="",
        clone_parent=None,
        uid=None,
        gid=None,
        root_mode="",
        guarantee="none",
        snapshot_reserve_percent=0,
        used_bytes=0,
        aggregate="aggr1",
        created_at=None,
    )
    return dataclasses.replace(base, **fields)  # type: ignore[arg-type]


def parent(name: str = PARENT, snapshot: str = "c1.b1") -> CloneParent:
    return CloneParent(
        volume_name=name,
        volume_uuid=volume(name, "").uuid,
        snapshot_name=snapshot,
        snapshot_uuid="",
    )


def tree(tag: str, **fields: object) -> KnownTree:
    base = KnownTree(
        kind="workspace",
        id=TAGS.index(tag) + 1,
        name="hers",
        tag=tag,
        comment=f"cloneyard:v1:{fields.get('kind', 'workspace')}={tag}",
        volume=Wanted.YES,
        volume_name=f"cy_hers_w{tag[:6]}",
        volume_uuid=volume(f"cy_hers_w{tag[:6]}", "").uuid,
        parent_volume=PARENT,
        junction_path="/w-hers",
        client=Wanted.YES,
        client_name=f"cy-hers-w{tag[:6]}",
        client_owner="alice",
        client_root="/mnt/w-hers",
        client_view=("//depot/... //c/...",),
    )
    return dataclasses.replace(base, **fields)  # type: ignore[arg-type]


def comments() -> st.SearchStrategy[str]:
    ours = st.builds(
        lambda kind, tag: f"cloneyard:v1:{kind}={tag}",
        st.sampled_from(["workspace", "template", "mirror"]),
        st.sampled_from(TAGS),
    )
    like_ours = ours.map(lambda text: text + " x") | ours.map(str.upper)
    return ours | like_ours | st.text(max_size=20)


def trees() -> st.SearchStrategy[tuple[KnownTree, ...]]:
    one = st.builds(
        lambda tag, kind, motion, settled, volume, client, junction: tree(
            tag,
            kind=kind,
            is_in_motion=motion,
            is_settled=settled,
            volume=volume,
            client=client,
            junction_path=junction,
            parent_volume=PARENT if kind == "workspace" else "",
        ),
        st.sampled_from(TAGS),
        st.sampled_from(["workspace", "template", "mirror"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from(Wanted),
        st.sampled_from(Wanted),
        st.sampled_from(["/w-hers", "", None]),
    )
    return st.lists(one, max_size=4, unique_by=lambda t: t.tag).map(tuple)


def volumes() -> st.SearchStrategy[tuple[Volume, ...]]:
    names = [*(f"cy_hers_w{tag[:6]}" for tag in TAGS), PARENT, "finance", "cy_x"]
    one = st.builds(
        lambda name, comment, path, cloned, state: volume(
            name,
            comment,
            junction_path=path,
            clone_parent=parent(cloned) if cloned else None,
            state=state,
        ),
        st.sampled_from(names),
        comments(),
        st.sampled_from(["", "/w-hers", "/elsewhere"]),
        st.sampled_from(["", PARENT, "other"]),
        st.sampled_from(["online", "offline", ""]),
    )
    return st.lists(one, max_size=6, unique_by=lambda v: v.name).map(tuple)


@given(trees=trees(), seen=volumes(), judges=st.booleans())
def test_volumes(
    trees: tuple[KnownTree, ...], seen: tuple[Volume, ...], judges: bool
) -> None:
    known = Known(trees=trees, judges_strangers=judges)
    found = compare_storage(known, SeenStorage(volumes=seen))

    rows = {(t.kind, t.tag): t for t in trees}
    there = {v.name: v for v in seen}
    own_names = {t.volume_name for t in trees}
    assert len({(d.kind, d.subject) for d in found}) == len(found), "none twice"
    for difference in found:
        named = there.get(difference.subject)
        tag = tag_of_volume(named) if named else None
        # What is named is marked as ours, or is the name of a row's own volume.
        assert tag is not None or difference.subject in own_names
        row = next(
            (t for t in trees if t.id == getattr(difference, f"{t.kind}_id")),
            None,
        )
        assert row is None or not row.is_in_motion
        assert difference.action is not Action.NONE
        assert len(preview(difference)) > 1
        if row is None:
            assert judges
            assert tag not in rows
        assert_safe(difference, row, named)


def assert_safe(
    difference: Finding, row: KnownTree | None, named: Volume | None
) -> None:
    """What is done by itself cannot lose work."""
    if not difference.is_automatic:
        return
    assert row is not None
    assert named is not None
    if difference.action is Action.REMOVE:
        assert row.volume is Wanted.NO
        assert row.is_settled
        assert not named.junction_path
        assert row.is_its_volume(named)
        assert named.clone_parent is not None
        assert named.clone_parent.volume_name == row.parent_volume
    else:
        assert difference.action is Action.ADOPT
        assert row.volume is Wanted.MAYBE


@given(trees=trees(), seen=volumes())
def test_a_finding_goes_away_with_its_difference(
    trees: tuple[KnownTree, ...], seen: tuple[Volume, ...]
) -> None:
    """What is exactly as the rows say leads to no finding."""
    as_wanted = tuple(
        volume(
            t.volume_name,
            t.comment,
            uuid=t.volume_uuid,
            junction_path=t.junction_path or "",
            clone_parent=parent(t.parent_volume) if t.parent_volume else None,
        )
        for t in trees
        if t.volume is not Wanted.NO
    )
    strangers = tuple(v for v in seen if tag_of_volume(v) is None)

    filled = frozenset(t.volume_name for t in trees if t.is_mirror)
    assert not compare_storage(
        Known(trees=trees),
        SeenStorage(volumes=(*as_wanted, *strangers), filled=filled),
    )


def test_another_sites_volume_is_not_judged() -> None:
    seen = volume("cy_x", f"cloneyard:v1:workspace={TAGS[0]}")
    known = Known(trees=(), elsewhere=frozenset({TAGS[0]}))

    assert not compare_storage(known, SeenStorage(volumes=(seen,)))


# --- clients


def clients() -> st.SearchStrategy[tuple[ClientSpec, ...]]:
    described = st.builds(
        lambda kind, tag: f"Cloneyard {kind} hers ({tag}), a clone.",
        st.sampled_from(["workspace", "template"]),
        st.sampled_from(TAGS),
    ) | st.text(max_size=20)
    names = st.builds(
        lambda letter, tag: f"cy-hers-{letter}{tag[:6]}",
        st.sampled_from("wt"),
        st.sampled_from(TAGS),
    ) | st.sampled_from(["cy-mine", "cy-hers-wzzzzzz", "cy--w000000"])
    one = st.builds(
        lambda name, description, owner, root: ClientSpec(
            name=name, owner=owner, root=root, description=description
        ),
        names,
        described,
        st.sampled_from(["alice", "carol"]),
        st.sampled_from(["/mnt/w-hers", "/mnt/w-hers/", "/elsewhere"]),
    )
    return st.lists(one, max_size=6, unique_by=lambda c: c.name).map(tuple)


@given(
    trees=trees(),
    seen=clients(),
    counts=st.tuples(*[st.integers(0, 1)] * 3),
    is_asked=st.booleans(),
)
def test_clients(
    trees: tuple[KnownTree, ...],
    seen: tuple[ClientSpec, ...],
    counts: tuple[int, int, int],
    is_asked: bool,
) -> None:
    opened, pending, shelved = counts
    work = ClientWork(opened=opened, pending=pending, shelved=shelved)
    found = compare_perforce(
        Known(trees=trees),
        SeenPerforce(
            clients=seen, work={c.name: work for c in seen} if is_asked else {}
        ),
    )

    there = {c.name: c for c in seen}
    rows = {t.client_name for t in trees}
    assert len({(d.kind, d.subject) for d in found}) == len(found), "none twice"
    for difference in found:
        named = there.get(difference.subject)
        is_ours = named is not None and tag_of_client(named) is not None
        assert is_ours or difference.subject in rows
        assert difference.action is not Action.NONE
        assert len(preview(difference)) > 1
        if difference.is_automatic:
            assert difference.kind is Kind.CLIENT_WITHOUT_ROW
            assert is_asked
            assert work.is_empty
            [row] = [t for t in trees if t.id == difference.workspace_id]
            assert row.volume is Wanted.NO
            assert not row.is_in_motion


def test_a_client_as_it_was_made_is_no_difference() -> None:
    row = tree(TAGS[0])
    client = ClientSpec(
        name=row.client_name,
        owner="alice",
        root="/mnt/w-hers",
        description=f"Cloneyard workspace hers ({row.tag}), a clone of c1.b1.\n",
        view=row.client_view,
    )
    views = {row.client_name: row.client_view}

    same = SeenPerforce(clients=(client,), views=views)
    other = SeenPerforce(clients=(client,), views={row.client_name: ("//x/... //c/x",)})

    assert not compare_perforce(Known(trees=(row,)), same)
    [found] = compare_perforce(Known(trees=(row,)), other)
    assert (found.kind, found.action) == (Kind.CLIENT_VIEW_DIFFERS, Action.FINISH)
    assert not found.is_automatic


# --- snapshots and jobs

TEMPLATE = tree(
    TAGS[3],
    kind="template",
    volume_name=PARENT,
    volume_uuid=volume(PARENT, "").uuid,
    parent_volume="",
    junction_path=None,
)


@given(
    name=st.sampled_from(["c1.b1", "c2.b2", "daily.0", "c1.b1 "]),
    is_commented=st.booleans(),
    owners=st.sampled_from([(), ("volume clone",)]),
    row=st.none()
    | st.builds(
        KnownSnapshot,
        of=st.just(("template", TEMPLATE.id)),
        name=st.sampled_from(["c1.b1", "c2.b2"]),
        uuid=st.sampled_from(["u", "other"]),
        is_published=st.booleans(),
        is_needed=st.booleans(),
    ),
    is_cloned=st.booleans(),
    of_build=st.sampled_from(["known", "unknown", "nobody's"]),
)
def test_snapshots(
    name: str,
    is_commented: bool,
    owners: tuple[str, ...],
    row: KnownSnapshot | None,
    is_cloned: bool,
    of_build: str,
) -> None:
    comment = f"{TEMPLATE.comment} change=1" if is_commented else "somebody's"
    if of_build != "nobody's":
        comment += f" have=0:{64 * '0'} asked=20261123T000000000000"
    snapshot = VolumeSnapshot(
        uuid="u", name=name, comment=comment, created_at=None, owners=owners
    )
    own = volume(PARENT, TEMPLATE.comment)
    clone = volume("theirs", "", clone_parent=parent(snapshot=name))
    found = compare_storage(
        Known(
            trees=(TEMPLATE,),
            snapshots=(row,) if row else (),
            builds=frozenset({(TEMPLATE.id, "20261123T000000000000")})
            if of_build == "known"
            else frozenset(),
        ),
        SeenStorage(
            volumes=(own, clone) if is_cloned else (own,),
            snapshots={own.uuid: (snapshot,)},
        ),
    )

    gone = [d for d in found if d.kind is Kind.ROW_WITHOUT_SNAPSHOT]
    assert bool(gone) == (row is not None and row.is_published and row.uuid != "u")
    removed = [d for d in found if d.kind is Kind.SNAPSHOT_WITHOUT_ROW]
    same_name = row is not None and row.name == name
    is_wanted = same_name and row is not None and (row.is_published or row.is_needed)
    is_ours = is_commented and name in ("c1.b1", "c2.b2")
    assert bool(removed) == (is_ours and not owners and not is_cloned and not is_wanted)
    is_left = not same_name and of_build == "known"
    assert all(d.is_automatic == is_left for d in removed)
    is_older = not same_name and of_build == "unknown"
    assert all((d.action == Action.ADOPT) == is_older for d in removed)


def test_a_mirrors_volume_is_judged_by_what_snapmirror_alone_decides() -> None:
    """Only missing snapshots count: ONTAP deletes what is at a destination."""
    row = tree(
        TAGS[0], kind="mirror", parent_volume="", junction_path=None, client=Wanted.NO
    )
    own = volume(row.volume_name, row.comment)
    there = VolumeSnapshot(
        uuid="u", name="c9.b9", comment="", created_at=None, owners=()
    )
    lost = KnownSnapshot(
        of=("mirror", row.id), name="c1.b1", uuid="v", is_published=True, is_needed=True
    )
    known = Known(trees=(row,), snapshots=(lost,))
    seen = SeenStorage(volumes=(own,), snapshots={own.uuid: (there,)})

    unfilled, gone = compare_storage(known, seen)

    assert unfilled.kind is Kind.ROW_WITHOUT_RELATIONSHIP
    assert (gone.kind, gone.snapshot) == (Kind.ROW_WITHOUT_SNAPSHOT, "c1.b1")
    assert gone.mirror_id == row.id
    assert "gone at the site" in preview(gone)[1]


def test_only_our_own_jobs_are_reported() -> None:
    row = KnownJob(
        uuid="1", step="mount", operation_id=7, workspace_id=1, template_id=None
    )
    jobs = tuple(
        OntapJob(uuid=uuid_, state="running", description="PATCH", message="")
        for uuid_ in ("1", "2")
    )

    [found] = compare_storage(
        Known(trees=(), jobs=(row,)), SeenStorage(volumes=(), jobs=jobs)
    )
    assert (found.subject, found.action) == ("1", Action.REMOVE)
    assert not found.is_automatic
    assert not compare_storage(Known(trees=(), jobs=(row,)), SeenStorage(volumes=()))


@pytest.mark.parametrize(("kind", "action"), repairs.REPAIRS)
def test_every_action_that_is_offered_says_what_it_does(
    kind: Finding.Kind, action: Finding.Action
) -> None:
    finding = Finding(kind=kind, action=action, subject="s", details={})
    assert len(preview(finding)) > 1


def test_every_kind_has_an_action() -> None:
    assert {kind for kind, _ in repairs.REPAIRS} == set(Kind)


def test_a_volume_that_took_the_name_of_a_lost_one_is_left_alone() -> None:
    row = tree(TAGS[0])
    other = volume(row.volume_name, "finance", uuid=TAGS[1])
    [found] = compare_storage(
        Known(trees=(row,)),
        SeenStorage(volumes=(), untagged={row.volume_name: other}),
    )
    assert (found.kind, found.external_id) == (Kind.ROW_WITHOUT_VOLUME, row.volume_uuid)
    assert "Another volume has its name now" in found.sentence


def a_clone() -> tuple[Workspace, list[VolumePolicy]]:
    snapshot = SnapshotFactory.create()
    template = snapshot.template
    policy = VolumePolicy(
        site=template.site,
        guarantee="none",
        min_inodes=most_inodes(template.volume_size_bytes * 2),
        applied_at=timezone.now() - HOUR,
    )
    template.refresh_from_db()
    snapshot.refresh_from_db()
    row = Workspace(site=template.site, template=template, snapshot=snapshot)
    return row, [policy]


@pytest.mark.django_db
def test_a_clone_of_a_snapshot_that_is_older_than_the_policy_is_not_compared() -> None:
    row, policies = a_clone()
    seen = volume("cy_x", "", created_at=timezone.now())
    assert settings_wanted(row, policies, volume=seen).guarantee == "none"
    # By ONTAP's clock it was made since, but its snapshot was not.
    Snapshot.objects.update(created_at=timezone.now() - 2 * HOUR)
    row.snapshot.refresh_from_db()
    assert settings_wanted(row, policies, volume=seen) == NOTHING


@pytest.mark.django_db
def test_headroom_gives_a_clone_no_more_inodes_than_its_template() -> None:
    row, policies = a_clone()
    size = row.template.volume_size_bytes
    seen = volume("cy_x", "", created_at=timezone.now(), size_bytes=size * 2)
    wanted = settings_wanted(row, policies, volume=seen)
    assert wanted.max_inodes == most_inodes(size)


@pytest.mark.parametrize(
    ("kind", "wanted", "is_automatic"),
    [
        ("template", VolumeSettings(autosize_mode="grow"), True),
        ("template", VolumeSettings(security_style="unix"), True),
        ("workspace", VolumeSettings(guarantee="none"), True),
        ("workspace", VolumeSettings(guarantee="volume"), False),
        ("template", VolumeSettings(guarantee="volume"), False),
        ("workspace", VolumeSettings(security_style="unix"), False),
    ],
)
def test_what_takes_room_or_concerns_work_waits_for_a_person(
    kind: str, wanted: VolumeSettings, is_automatic: bool
) -> None:
    is_clone = kind == "workspace"
    known = tree(
        TAGS[0],
        kind=kind,
        settings_of=lambda volume: wanted,
        parent_volume=parent().volume_name if is_clone else "",
    )
    own = volume(
        known.volume_name,
        known.comment,
        junction_path=known.junction_path,
        clone_parent=parent() if is_clone else None,
    )
    has = VolumeSettings(
        autosize_mode="off",
        guarantee="none" if wanted.guarantee == "volume" else "volume",
        security_style="ntfs",
    )
    seen = SeenStorage(volumes=(own,), settings={own.uuid: has})

    [found] = compare_storage(Known(trees=(known,)), seen)

    assert found.is_automatic is is_automatic
    takes_room = "takes its whole size" in " ".join(preview(found))
    assert takes_room is (wanted.guarantee == "volume")
