"""Perforce verbs for trees of templates: parts at other changes, and leftovers."""

from __future__ import annotations

import shutil

import pytest

from provisioner.gateways.perforce.types import HaveList, Part
from tests.support.perforce_scene import PerforceScene


def have(scene: PerforceScene, suffix: str) -> HaveList:
    return scene.gateway.files.have_list(scene.client_name(suffix))


@pytest.fixture
def two_changes(perforce: PerforceScene) -> tuple[int, Part]:
    """A change, and the directory `part` at a later one."""
    scene = perforce
    first = scene.submit({"part/a": b"1\n", "part/gone": b"1\n", "rest/b": b"1\n"})
    later = scene.submit(
        {"part/a": b"2\n", "part/gone": None, "part/new": b"2\n", "rest/b": b"2\n"}
    )
    return first, Part(path=f"{scene.folder}/part/...", change=later)


def test_a_part_is_synced_to_its_own_change(
    perforce: PerforceScene, two_changes: tuple[int, Part]
) -> None:
    scene, (change, part) = perforce, two_changes
    client = scene.make_client().name

    scene.gateway.files.sync(
        client, change=change, parts=[part], on_progress=lambda _: None
    )

    root = scene.place / "ws"
    assert (root / "rest" / "b").read_text() == "1\n"
    assert (root / "part" / "a").read_text() == (root / "part" / "new").read_text()
    assert not (root / "part" / "gone").exists()
    count = scene.gateway.files.count_out_of_sync
    assert count(client, change=change, parts=[part]) == 0
    assert count(client, change=change) == 3
    assert count(client, change=part.change) == 1
    earlier = Part(path=part.path, change=change)
    assert count(client, change=change, parts=[earlier]) == 3


def test_a_flush_to_a_pin_with_parts_is_what_the_sync_was(
    perforce: PerforceScene, two_changes: tuple[int, Part]
) -> None:
    scene, (change, part) = perforce, two_changes
    synced, flushed = scene.make_client().name, scene.make_client("other").name
    scene.gateway.files.sync(
        synced, change=change, parts=[part], on_progress=lambda _: None
    )

    for _ in range(2):
        scene.gateway.files.flush(flushed, change=change, parts=[part])

        assert have(scene, "other") == have(scene, "ws")
    scene.gateway.files.flush(flushed, change=change)
    assert have(scene, "other") != have(scene, "ws")


def test_what_was_synced_after_a_pin_with_parts_comes_back(
    perforce: PerforceScene, two_changes: tuple[int, Part]
) -> None:
    scene, (change, part) = perforce, two_changes
    client = scene.make_client().name
    scene.gateway.files.flush(client, change=change, parts=[part])
    scene.gateway.files.flush_to(client, [(f"{scene.folder}/part/a", 1)])
    before = have(scene, "ws")

    differences = scene.gateway.files.have_differences(
        client, change=change, parts=[part]
    )
    scene.gateway.files.flush(client, change=change, parts=[part])
    assert have(scene, "ws") != before
    scene.gateway.files.flush_to(client, differences)

    assert have(scene, "ws") == before


def test_what_a_build_did_to_versioned_files_is_undone(
    perforce: PerforceScene, two_changes: tuple[int, Part]
) -> None:
    scene, (change, _) = perforce, two_changes
    client = scene.make_client().name
    scene.gateway.files.sync(client, change=change, on_progress=lambda _: None)
    root = scene.place / "ws"
    (root / "rest" / "b").chmod(0o644)
    (root / "rest" / "b").write_text("broken by a build\n")
    shutil.rmtree(root / "part")
    (root / "out").write_text("built\n")

    restored = scene.gateway.files.restore(client)

    assert sorted(path.rpartition("/")[2] for path in restored) == ["a", "b", "gone"]
    assert (root / "rest" / "b").read_text() == "1\n"
    assert (root / "part" / "gone").read_text() == "1\n"
    assert (root / "out").exists()
    assert scene.gateway.files.restore(client) == []


def test_local_paths_are_those_of_the_files_on_disk(
    perforce: PerforceScene,
) -> None:
    scene = perforce
    change = scene.submit({"odd @#% name": b"1\n", "ünï/code": b"1\n"})
    client = scene.make_client().name
    scene.gateway.files.sync(client, change=change, on_progress=lambda _: None)
    paths: list[str] = []

    scene.gateway.files.local_paths(client, paths.append)

    root = scene.place / "ws"
    on_disk = [str(path) for path in root.rglob("*") if path.is_file()]
    assert sorted(paths) == sorted(on_disk)
