"""What gateway.py promises about Perforce, verb by verb."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from provisioner.gateways.errors import (
    AuthFailed,
    InUse,
    NotFound,
    Refused,
)
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import SyncProgress
from tests.support.perforce_scene import (
    PerforceScene,
    ignore_progress,
    running_lab,
    scene_at,
)

NEVER = 2_000_000_000
TREE: dict[str, bytes | Path | None] = {
    "readme.txt": b"hello\n",
    "src/main.c": b"int main(void) { return 0; }\n",
    "src/tool.sh": b"#!/bin/sh\n",
    "src/data.bin": bytes(range(256)) * 8,
    "link": Path("src/main.c"),
    "with space/é.txt": "naïve\n".encode(),
    "odd/a@b#c%d.txt": b"odd\n",
}


def sync(scene: PerforceScene, client: str, *, change: int) -> None:
    scene.gateway.files.sync(client, change=change, on_progress=ignore_progress)


# --- the account


def test_info_says_what_the_server_is(perforce: PerforceScene) -> None:
    info = perforce.gateway.get_info()

    assert info.version.startswith("P4D/")
    assert info.services


def test_our_account_may_work(perforce: PerforceScene) -> None:
    perforce.gateway.check_login()
    assert perforce.gateway.access_level() in {"super", "admin"}
    perforce.gateway.check_login()


def test_a_wrong_password_is_told_apart_and_not_repeated_in_the_sentence(
    perforce: PerforceScene,
) -> None:
    account = replace(perforce.account, password="wrong secret")

    with pytest.raises(AuthFailed) as caught:
        PerforceGateway(account).check_login()

    assert perforce.account.user in caught.value.sentence
    assert "wrong secret" not in repr(caught.value.log_context())


def test_a_ticket_does_as_a_password(perforce: PerforceScene) -> None:
    with perforce.at_the_shell("none") as shell:
        reply = shell.run("login", "-p", text=perforce.account.password)
    account = replace(perforce.account, password=reply.texts[-1])

    PerforceGateway(account).check_login()
    assert PerforceGateway(account).changes.latest(("//...",)) >= 0


def test_a_ticket_that_is_none_is_refused(perforce: PerforceScene) -> None:
    account = replace(perforce.account, password="0123456789ABCDEF" * 2)

    with pytest.raises(AuthFailed):
        PerforceGateway(account).check_login()


def test_users_are_known_by_their_exact_name(perforce: PerforceScene) -> None:
    user = perforce.account.user

    assert perforce.gateway.spelling_of(user) == user
    assert perforce.gateway.spelling_of(user[:-1]) is None
    assert perforce.gateway.spelling_of(f"{user[:-1]}*") is None


# --- clients


def test_a_saved_client_is_found_as_it_was_saved(perforce: PerforceScene) -> None:
    name = perforce.client_name()
    spec = perforce.make_client(
        owner="somebody",
        line_end="unix",
        submit_options="leaveunchanged",
        view=(
            f"{perforce.folder}/src/... //{name}/src/...",
            f'"{perforce.folder}/with space/..." "//{name}/with space/..."',
            f"-{perforce.folder}/src/*.bin //{name}/src/*.bin",
        ),
    )

    found = perforce.gateway.clients.find(name)

    assert found is not None
    assert found.updated_at is not None
    assert found.accessed_at is not None
    expected = found.options.split()[:6]
    assert expected == spec.options.split()
    assert replace(
        found, updated_at=None, accessed_at=None, options=spec.options, type=""
    ) == replace(spec, type="")


def test_saving_again_changes_nothing(perforce: PerforceScene) -> None:
    spec = perforce.make_client()
    before = perforce.gateway.clients.find(spec.name)

    perforce.gateway.clients.save(spec)

    after = perforce.gateway.clients.find(spec.name)
    assert before is not None
    assert after is not None
    assert after.view == before.view


def test_a_client_lets_every_host_use_it(perforce: PerforceScene) -> None:
    spec = perforce.make_client(host="")

    found = perforce.gateway.clients.find(spec.name)

    assert found is not None
    assert found.host == ""


def test_a_client_that_is_not_there_is_none(perforce: PerforceScene) -> None:
    perforce.make_client()

    assert perforce.gateway.clients.find(perforce.client_name("nobody")) is None
    assert perforce.gateway.clients.find(perforce.client_name()[:-1] + "*") is None


def test_clients_are_listed_by_pattern(perforce: PerforceScene) -> None:
    perforce.make_client("a")
    perforce.make_client("b")

    listed = perforce.gateway.clients.find_all(name_filter=perforce.client_name("*"))

    assert sorted(spec.name for spec in listed) == [
        perforce.client_name("a"),
        perforce.client_name("b"),
    ]
    assert all(spec.owner == perforce.account.user for spec in listed)
    assert all(spec.accessed_at is not None for spec in listed)


def test_a_view_of_no_depot_is_refused(perforce: PerforceScene) -> None:
    name = perforce.client_name()

    with pytest.raises((Refused, NotFound)):
        perforce.make_client(view=(f"//no-such-depot-here/... //{name}/...",))
    perforce.clients.clear()

    assert perforce.gateway.clients.find(name) is None


def test_a_client_locked_by_another_is_not_changed(perforce: PerforceScene) -> None:
    spec = perforce.client_spec()
    locked = spec.options.replace("unlocked", "locked")
    perforce.make_client(owner="somebody", options=locked)

    with pytest.raises(Refused):
        perforce.gateway.clients.save(replace(spec, owner="somebody", root="/else"))
    with pytest.raises(Refused):
        perforce.gateway.clients.delete(spec.name)

    with perforce.at_the_shell("none") as shell:
        shell.run("client", "-d", "-f", spec.name)
    perforce.clients.clear()


def test_a_deleted_client_is_gone_and_deleting_again_is_fine(
    perforce: PerforceScene,
) -> None:
    spec = perforce.make_client()

    perforce.gateway.clients.delete(spec.name)
    perforce.gateway.clients.delete(spec.name)

    assert perforce.gateway.clients.find(spec.name) is None


def test_a_client_with_open_files_is_in_use(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)
    with perforce.at_the_shell(spec.name) as shell:
        shell.run("edit", f"//{spec.name}/readme.txt")

    with pytest.raises(InUse):
        perforce.gateway.clients.delete(spec.name)

    assert perforce.gateway.clients.find(spec.name) is not None


def test_a_client_with_a_pending_change_is_in_use(perforce: PerforceScene) -> None:
    spec = perforce.make_client()
    perforce.pending_change(spec.name)

    with pytest.raises(InUse):
        perforce.gateway.clients.delete(spec.name)


# --- changes and files


def test_the_latest_change_is_that_of_the_paths(perforce: PerforceScene) -> None:
    first = perforce.submit({"a/one": b"1\n", "b/one": b"1\n"})
    second = perforce.submit({"b/one": b"2\n"})

    latest = perforce.gateway.changes.latest

    assert latest((f"{perforce.folder}/a/...",)) == first
    assert latest((perforce.everything,)) == second
    assert latest((f"{perforce.folder}/a/...", f"{perforce.folder}/b/...")) == second
    assert latest((f"{perforce.folder}/none/...",)) == 0


def test_only_submitted_changes_are_submitted(perforce: PerforceScene) -> None:
    submitted = perforce.submit({"a": b"1\n"})
    pending = perforce.pending_change(perforce.client_name("author"))

    assert perforce.gateway.changes.is_submitted(submitted)
    assert not perforce.gateway.changes.is_submitted(pending)
    assert not perforce.gateway.changes.is_submitted(NEVER)


def test_whether_there_are_files_is_asked_as_of_a_change(
    perforce: PerforceScene,
) -> None:
    first = perforce.submit({"a/one": b"1\n", "a/two": b"2\n", "b": b"3\n"})
    second = perforce.submit({"a/two": None})
    folder = perforce.folder

    has = perforce.gateway.files.exist

    assert has((perforce.everything,), change=second)
    assert has((f"{folder}/a/two",), change=first)
    assert not has((f"{folder}/a/two",), change=second)
    assert not has((f"{folder}/none/...",), change=first)
    assert has((f"{folder}/none/...", f"{folder}/b"), change=first)


# --- have lists


def test_a_flush_has_what_a_sync_would_have(perforce: PerforceScene) -> None:
    perforce.submit(TREE)
    pinned = perforce.submit({"readme.txt": b"second\n", "src/main.c": None})
    perforce.submit({"readme.txt": b"third\n"})
    synced, flushed = perforce.make_client("synced"), perforce.make_client("flushed")
    sync(perforce, synced.name, change=pinned)

    perforce.gateway.files.flush(flushed.name, change=pinned)

    have = perforce.gateway.files.have_list(flushed.name)
    assert have == perforce.gateway.files.have_list(synced.name)
    assert have.count == len(TREE) - 1
    assert not Path(flushed.root).exists()
    assert perforce.gateway.files.count_out_of_sync(flushed.name, change=pinned) == 0


def test_a_second_flush_changes_nothing(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    perforce.gateway.files.flush(spec.name, change=change)
    before = perforce.gateway.files.have_list(spec.name)

    perforce.gateway.files.flush(spec.name, change=change)

    assert perforce.gateway.files.have_list(spec.name) == before


def test_a_flush_goes_back_to_an_older_change(perforce: PerforceScene) -> None:
    first = perforce.submit({"a": b"1\n"})
    second = perforce.submit({"a": b"2\n", "b": b"2\n"})
    spec = perforce.make_client()
    perforce.gateway.files.flush(spec.name, change=second)

    perforce.gateway.files.flush(spec.name, change=first)

    assert perforce.gateway.files.have_list(spec.name).count == 1


def test_the_digest_is_that_of_the_sorted_lines(perforce: PerforceScene) -> None:
    perforce.submit({"b": b"1\n", "A": b"1\n"})
    change = perforce.submit({"b": b"2\n"})
    spec = perforce.make_client()
    perforce.gateway.files.flush(spec.name, change=change)

    have = perforce.gateway.files.have_list(spec.name)

    lines = f"{perforce.folder}/A#1\n{perforce.folder}/b#2\n"
    assert have.count == 2
    assert have.digest == hashlib.sha256(lines.encode()).hexdigest()


def test_a_new_client_has_nothing(perforce: PerforceScene) -> None:
    spec = perforce.make_client()

    assert perforce.gateway.files.have_list(spec.name).count == 0


def test_a_flush_refuses_a_change_that_is_not_submitted(
    perforce: PerforceScene,
) -> None:
    perforce.submit({"a": b"1\n"})
    spec = perforce.make_client()

    with pytest.raises(NotFound):
        perforce.gateway.files.flush(spec.name, change=NEVER)

    assert perforce.gateway.files.have_list(spec.name).count == 0


def test_a_client_that_is_not_there_has_no_have_list(perforce: PerforceScene) -> None:
    change = perforce.submit({"a": b"1\n"})
    name = perforce.client_name("nobody")

    with pytest.raises(NotFound):
        perforce.gateway.files.flush(name, change=change)
    with pytest.raises(NotFound):
        perforce.gateway.files.have_list(name)
    with pytest.raises(NotFound):
        perforce.gateway.files.reconcile_preview(name, untracked=False)


def test_a_client_of_another_host_is_refused(perforce: PerforceScene) -> None:
    change = perforce.submit({"a": b"1\n"})
    spec = perforce.make_client(host="another-host")

    with pytest.raises(Refused):
        perforce.gateway.files.flush(spec.name, change=change)

    perforce.gateway.clients.save(replace(spec, host=""))


# --- work in progress


def test_opened_files_and_pending_changes_are_listed(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)
    pending = perforce.pending_change(spec.name)
    with perforce.at_the_shell(spec.name) as shell:
        shell.run("edit", "-c", str(pending), f"//{spec.name}/readme.txt")
        shell.run("delete", f"//{spec.name}/src/main.c")

    opened = perforce.gateway.changes.list_opened(spec.name)
    changes = perforce.gateway.changes.list_pending(spec.name)

    found = {file.depot_file: (file.action, file.change) for file in opened}
    assert found == {
        f"{perforce.folder}/readme.txt": ("edit", str(pending)),
        f"{perforce.folder}/src/main.c": ("delete", "default"),
    }
    assert {file.user for file in opened} == {perforce.account.user}
    assert [each.change for each in changes] == [pending]
    assert changes[0].description == "Work."
    assert not changes[0].is_shelved


def test_a_quiet_client_has_nothing_in_progress(perforce: PerforceScene) -> None:
    spec = perforce.make_client()

    assert perforce.gateway.changes.list_opened(spec.name) == []
    assert perforce.gateway.changes.list_pending(spec.name) == []


def test_reverting_on_the_server_keeps_the_files(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)
    with perforce.at_the_shell(spec.name) as shell:
        shell.run("edit", f"//{spec.name}/readme.txt")
    readme = Path(spec.root, "readme.txt")
    readme.write_text("unsubmitted\n")

    perforce.gateway.changes.revert_server_side(spec.name)
    perforce.gateway.changes.revert_server_side(spec.name)

    assert perforce.gateway.changes.list_opened(spec.name) == []
    assert readme.read_text() == "unsubmitted\n"


def test_a_pending_change_is_deleted_once_and_gone(perforce: PerforceScene) -> None:
    spec = perforce.make_client()
    pending = perforce.pending_change(spec.name)

    perforce.gateway.changes.delete_pending(pending, delete_shelf=False)
    perforce.gateway.changes.delete_pending(pending, delete_shelf=False)

    assert perforce.gateway.changes.list_pending(spec.name) == []


def test_a_pending_change_with_open_files_is_in_use(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    perforce.gateway.files.flush(spec.name, change=change)
    pending = perforce.pending_change(spec.name)
    with perforce.at_the_shell(spec.name) as shell:
        shell.run("edit", "-k", "-c", str(pending), f"//{spec.name}/readme.txt")

    with pytest.raises(InUse):
        perforce.gateway.changes.delete_pending(pending, delete_shelf=False)


def test_a_shelf_is_marked_and_goes_only_when_asked(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)
    pending = perforce.pending_change(spec.name)
    with perforce.at_the_shell(spec.name) as shell:
        shell.run("edit", "-c", str(pending), f"//{spec.name}/readme.txt")
        shell.run("shelve", "-c", str(pending))
    perforce.gateway.changes.revert_server_side(spec.name)

    [listed] = perforce.gateway.changes.list_pending(spec.name)
    with pytest.raises(InUse):
        perforce.gateway.changes.delete_pending(pending, delete_shelf=False)
    with pytest.raises(InUse):
        perforce.gateway.clients.delete(spec.name)
    perforce.gateway.changes.delete_pending(pending, delete_shelf=True)
    perforce.gateway.changes.delete_pending(pending, delete_shelf=True)

    assert listed.is_shelved
    assert perforce.gateway.changes.list_pending(spec.name) == []


# --- local files


def test_a_sync_brings_the_files_as_they_were_submitted(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    seen: list[SyncProgress] = []

    report = perforce.gateway.files.sync(
        spec.name, change=change, on_progress=seen.append
    )

    root = Path(spec.root)
    for name, content in TREE.items():
        if isinstance(content, Path):
            assert (root / name).readlink() == content
        else:
            assert (root / name).read_bytes() == content
    assert os.access(root / "src/tool.sh", os.X_OK)
    assert not os.access(root / "src/main.c", os.X_OK)
    assert (root / "readme.txt").stat().st_mode & 0o222 == 0
    assert report.files == len(TREE)
    assert report.bytes >= 2048
    assert report.seconds >= 0
    assert (seen[-1].files, seen[-1].files_total) == (len(TREE), len(TREE))
    assert seen[-1].bytes == seen[-1].bytes_total == report.bytes


@pytest.fixture
def wide_perforce() -> Iterator[PerforceScene]:
    """A server that admits several connections, for as little as two files."""
    limits = ("max=8", "min=2", "minsize=1", "batch=1")
    options = [word for limit in limits for word in ("-v", f"net.parallel.{limit}")]
    with running_lab(*options) as target:
        yield from scene_at(target)


def test_a_sync_asks_for_as_many_connections_as_its_server_has_for_it(
    wide_perforce: PerforceScene,
) -> None:
    scene = wide_perforce
    change = scene.submit(TREE)
    spec = scene.make_client()
    account = replace(scene.account, sync_connections=4)
    told: list[SyncProgress] = []

    report = PerforceGateway(account).files.sync(
        spec.name, change=change, on_progress=told.append
    )

    assert report.files == len(TREE)
    assert told[-1].files == told[-1].files_total == len(TREE)
    assert told[-1].bytes == report.bytes
    assert scene.target.lab_root is not None
    log = (scene.target.lab_root.parent / "log").read_text()
    assert f"user-sync --parallel=threads=4 //{spec.name}/..." in log
    assert log.count("'user-transmit -t") == 4
    root = Path(spec.root)
    assert all(
        (root / name).read_bytes() == content
        for name, content in TREE.items()
        if isinstance(content, bytes)
    )


def test_connections_that_a_server_does_not_admit_are_refused(
    lab_perforce: PerforceScene,
) -> None:
    change = lab_perforce.submit(TREE)
    spec = lab_perforce.make_client()
    account = replace(lab_perforce.account, sync_connections=4)

    with pytest.raises(Refused, match=r"net\.parallel\.max"):
        PerforceGateway(account).files.sync(
            spec.name, change=change, on_progress=ignore_progress
        )


def test_a_second_sync_sends_nothing(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)

    report = perforce.gateway.files.sync(
        spec.name, change=change, on_progress=ignore_progress
    )

    assert (report.files, report.bytes) == (0, 0)


def test_a_sync_removes_what_the_change_has_not(perforce: PerforceScene) -> None:
    first = perforce.submit({"a": b"1\n", "b": b"1\n"})
    second = perforce.submit({"b": None, "c": b"1\n"})
    spec = perforce.make_client()
    sync(perforce, spec.name, change=first)
    assert perforce.gateway.files.count_out_of_sync(spec.name, change=second) == 2

    sync(perforce, spec.name, change=second)

    assert sorted(os.listdir(spec.root)) == ["a", "c"]
    assert perforce.gateway.files.count_out_of_sync(spec.name, change=second) == 0


def test_a_sync_to_no_submitted_change_is_refused(perforce: PerforceScene) -> None:
    perforce.submit({"a": b"1\n"})
    spec = perforce.make_client()

    with pytest.raises(NotFound):
        sync(perforce, spec.name, change=NEVER)
    with pytest.raises(NotFound):
        perforce.gateway.files.count_out_of_sync(spec.name, change=NEVER)


def test_a_sync_names_the_files_it_could_not_write(perforce: PerforceScene) -> None:
    change = perforce.submit({"a/file": b"1\n", "b": b"1\n"})
    spec = perforce.make_client()
    Path(spec.root).mkdir()
    Path(spec.root, "a").write_text("a file where a directory should be")

    with pytest.raises(Refused) as caught:
        sync(perforce, spec.name, change=change)

    assert f"{spec.root}/a" in caught.value.sentence
    assert Path(spec.root, "b").exists()
    Path(spec.root, "a").unlink()
    sync(perforce, spec.name, change=change)
    assert Path(spec.root, "a/file").read_bytes() == b"1\n"


def test_a_sync_fetches_again_what_a_killed_one_left(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    odd = Path(spec.root, "odd/a@b#c%d.txt")
    odd.parent.mkdir(parents=True)
    odd.write_bytes(b"o")

    with pytest.raises(Refused):
        sync(perforce, spec.name, change=change)
    report = perforce.gateway.files.sync(
        spec.name, change=change, on_progress=ignore_progress, replace_leftovers=True
    )

    assert report.files == 1
    assert odd.read_bytes() == TREE["odd/a@b#c%d.txt"]
    assert perforce.gateway.files.reconcile_preview(spec.name, untracked=True) == []


def test_a_sync_never_replaces_what_somebody_changed(perforce: PerforceScene) -> None:
    first = perforce.submit({"a": b"1\n"})
    second = perforce.submit({"a": b"2\n"})
    spec = perforce.make_client()
    sync(perforce, spec.name, change=first)
    path = Path(spec.root, "a")
    path.chmod(0o644)
    path.write_text("edited\n")

    with pytest.raises(Refused) as caught:
        perforce.gateway.files.sync(
            spec.name,
            change=second,
            on_progress=ignore_progress,
            replace_leftovers=True,
        )

    assert str(path) in caught.value.sentence
    assert path.read_text() == "edited\n"


def test_a_sync_that_leaves_an_opened_file_behind_is_refused(
    perforce: PerforceScene,
) -> None:
    first = perforce.submit({"a": b"1\n"})
    second = perforce.submit({"a": b"2\n"})
    spec = perforce.make_client()
    sync(perforce, spec.name, change=second)
    with perforce.at_the_shell(spec.name) as shell:
        shell.run("edit", f"//{spec.name}/a")

    with pytest.raises(Refused) as caught:
        sync(perforce, spec.name, change=first)

    assert f"{perforce.folder}/a" in caught.value.sentence


def test_reconcile_finds_every_difference_and_opens_nothing(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)
    root = Path(spec.root)
    (root / "readme.txt").chmod(0o644)
    (root / "readme.txt").write_text("changed\n")
    (root / "src/data.bin").unlink()
    (root / "odd/a@b#c%d.txt").unlink()
    (root / "new @ file").write_text("untracked\n")

    versioned = perforce.gateway.files.reconcile_preview(spec.name, untracked=False)
    everything = perforce.gateway.files.reconcile_preview(spec.name, untracked=True)

    expected = {
        ("edit", str(root / "readme.txt")),
        ("delete", str(root / "src/data.bin")),
        ("delete", str(root / "odd/a@b#c%d.txt")),
    }
    assert {(found.action, found.path) for found in versioned} == expected
    assert {(found.action, found.path) for found in everything} == expected | {
        ("add", str(root / "new @ file"))
    }
    assert perforce.gateway.changes.list_opened(spec.name) == []


def test_a_flushed_copy_is_clean(perforce: PerforceScene) -> None:
    change = perforce.submit(TREE)
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)
    copy = perforce.make_client("copy", root=spec.root)
    perforce.gateway.files.flush(copy.name, change=change)

    assert perforce.gateway.files.reconcile_preview(copy.name, untracked=True) == []


def test_reconcile_ignores_our_patterns_and_no_file_in_the_tree(
    perforce: PerforceScene,
) -> None:
    change = perforce.submit({"keep": b"1\n", "src/out/kept": b"1\n"})
    spec = perforce.make_client()
    sync(perforce, spec.name, change=change)
    root = Path(spec.root)
    for name in ("a.o", "src/b.o", "out/x", "src/out/new", "build/y", "src/build/z"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("made by a build\n")
    (root / ".p4ignore").write_text("src\n")

    found = perforce.gateway.files.reconcile_preview(
        spec.name, untracked=True, ignore=("*.o", "/out", "build/", ".p4ignore")
    )

    assert [(each.action, each.path) for each in found] == [
        ("add", str(root / "src/out/new"))
    ]
