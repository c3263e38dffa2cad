"""Flushing directory by directory: the same have list, and what it waited for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from provisioner.gateways.errors import Busy
from provisioner.gateways.perforce import batching
from provisioner.gateways.perforce.batching import batches_of
from provisioner.gateways.perforce.types import (
    FlushPlace,
    FlushWatch,
    HaveList,
    LockUse,
    Part,
)
from tests.support.perforce_scene import PerforceScene

TREE: dict[str, bytes | Path | None] = {
    "readme": b"1\n",
    "src/main.c": b"1\n",
    "src/deep/er/x": b"1\n",
    "docs/a name": b"1\n",
    "at@home/file#1": b"1\n",
    "gone/file": b"1\n",
    "private/key": b"1\n",
}


def have(scene: PerforceScene, client: str) -> HaveList:
    return scene.gateway.files.have_list(client)


def view_of(scene: PerforceScene, suffix: str, below: str) -> tuple[str, ...]:
    """Map a folder, but for what is private."""
    name = scene.client_name(suffix)
    return (
        f"{scene.folder}{below}/... //{name}/top/...",
        f"-{scene.folder}{below}/private/... //{name}/top/private/...",
    )


@pytest.mark.parametrize("below", ["", "/one/two"])
def test_batches_lead_where_a_flush_at_once_does(
    below: str, perforce: PerforceScene
) -> None:
    scene = perforce
    prefix = f"{below[1:]}/" if below else ""
    scene.submit({f"{prefix}{name}": content for name, content in TREE.items()})
    pinned = scene.submit({f"{prefix}src/main.c": b"2\n", f"{prefix}gone/file": None})
    later = scene.submit({f"{prefix}readme": b"3\n", f"{prefix}new/file": b"3\n"})
    part = Part(path=f"{scene.folder}{below}/docs/...", change=later)
    at_once = scene.make_client("once", view=view_of(scene, "once", below)).name
    batched = scene.make_client("batched", view=view_of(scene, "batched", below)).name
    told: list[LockUse | None] = []

    def tell(use: LockUse | None) -> bool:
        told.append(use)
        return False

    watch = FlushWatch(on_command=tell)

    scene.gateway.files.flush(at_once, change=pinned, parts=[part])
    scene.gateway.files.flush(
        batched, change=pinned, parts=[part], in_batches=True, watch=watch
    )

    assert have(scene, batched) == have(scene, at_once)
    assert have(scene, batched).count == len(TREE) - 2
    with scene.at_the_shell(batched) as shell:
        batches = batches_of(shell, client=batched, change=pinned)
    assert f"{scene.folder}{below}/src/...@{pinned}" in batches
    # The server tells of each command that wrote.
    if scene.target.lab_root is not None:
        assert {use.table for use in told if use} == {"db.have"}
        assert len(told) > 2


def test_a_flush_in_batches_may_be_repeated(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    client = perforce.make_client().name

    for _ in range(2):
        perforce.gateway.files.flush(client, change=change, in_batches=True)

        assert have(perforce, client).count == len(TREE)


@pytest.mark.parametrize(("others_wait", "commands"), [(False, 2), (True, 4)])
def test_many_directories_share_commands_unless_others_wait(
    others_wait: bool,
    commands: int,
    perforce: PerforceScene,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "_MOST", 2)
    change = perforce.submit(TREE)
    client = perforce.make_client().name
    told: list[LockUse | None] = []

    def tell(use: LockUse | None) -> bool:
        told.append(use)
        return others_wait

    perforce.gateway.files.flush(
        client, change=change, in_batches=True, watch=FlushWatch(on_command=tell)
    )

    assert have(perforce, client).count == len(TREE)
    assert len(told) == commands


@dataclass
class Interrupted:
    """A flush that was ended after its first command, and where that was."""

    scene: PerforceScene
    client: str
    change: int
    wanted: HaveList
    place: FlushPlace

    def go_on(self) -> tuple[HaveList, list[FlushPlace]]:
        """Flush from there; return the have list and the places that were reached."""
        places: list[FlushPlace] = []
        watch = FlushWatch(
            on_command=lambda _: False, on_place=places.append, place=self.place
        )
        reached = self.scene.gateway.files.flush_towards(
            self.client,
            change=self.change,
            wanted=self.wanted,
            in_batches=True,
            watch=watch,
        )
        return reached, places


@pytest.fixture
def interrupted(perforce: PerforceScene) -> Interrupted:
    change = perforce.submit(TREE)
    files = perforce.gateway.files
    at_once = perforce.make_client("once").name
    files.flush(at_once, change=change)
    wanted = have(perforce, at_once)
    client = perforce.make_client().name
    places: list[FlushPlace] = []

    def end(use: LockUse | None) -> bool:
        raise Busy("A checkpoint runs.", system="perforce", operation="test")

    with pytest.raises(Busy):
        files.flush_towards(
            client,
            change=change,
            wanted=wanted,
            in_batches=True,
            watch=FlushWatch(on_command=end, on_place=places.append),
        )
    (place,) = places
    assert place.done == 1
    assert 0 < have(perforce, client).count < len(TREE)
    return Interrupted(perforce, client, change, wanted, place)


def test_a_flush_that_was_ended_goes_on_where_it_was(interrupted: Interrupted) -> None:
    reached, places = interrupted.go_on()

    assert reached == interrupted.wanted
    total = interrupted.place.total
    assert [place.done for place in places] == list(range(2, total + 1))
    assert {place.of for place in places} == {interrupted.place.of}


def test_what_was_flushed_before_and_lost_since_is_flushed_in_batches_again(
    interrupted: Interrupted,
) -> None:
    scene, client = interrupted.scene, interrupted.client
    with scene.at_the_shell(client) as shell:
        shell.run("sync", "-k", f"//{client}/...#none")

    reached, places = interrupted.go_on()

    assert reached == interrupted.wanted
    total = interrupted.place.total
    assert [place.done for place in places] == [
        *range(2, total + 1),
        *range(1, total + 1),
    ]


def test_a_flush_to_another_change_begins_with_its_first_directory(
    interrupted: Interrupted,
) -> None:
    files = interrupted.scene.gateway.files
    interrupted.change = interrupted.scene.submit({"later/file": b"1\n"})
    at_once = interrupted.scene.make_client("later").name
    files.flush(at_once, change=interrupted.change)
    interrupted.wanted = files.have_list(at_once)

    reached, places = interrupted.go_on()

    assert reached == interrupted.wanted
    assert [place.done for place in places] == list(range(1, places[0].total + 1))


def test_a_view_of_single_files_is_flushed_by_its_lines(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit(TREE)
    name = perforce.client_name()
    view = (
        f'"{perforce.folder}/docs/a name" "//{name}/a name"',
        f"{perforce.folder}/src/*.c //{name}/*.c",
    )
    client = perforce.make_client(view=view).name

    perforce.gateway.files.flush(client, change=change, in_batches=True)

    assert have(perforce, client).count == 2


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("{folder}/it's/... //{name}/its/...", 2),
        ("{folder}/%%1/x%%2.c //{name}/%%2/%%1.c", 1),
    ],
)
def test_a_line_with_an_apostrophe_or_numbered_wildcards_is_flushed(
    perforce: PerforceScene, line: str, count: int
) -> None:
    change = perforce.submit({"it's/xa.c": b"a\n", "it's/b/c": b"b\n", "d": b"d\n"})
    name = perforce.client_name()
    client = perforce.make_client(
        view=(line.format(folder=perforce.folder, name=name),)
    ).name

    perforce.gateway.files.flush(client, change=change, in_batches=True)

    assert have(perforce, client).count == count
