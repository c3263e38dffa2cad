"""Names that are not UTF-8: a server without Unicode mode has bytes, so have we."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.types import PerforceAccount
from tests.support.checkpoints import checkpoint, restore
from tests.support.lab_perforce import lab_server
from tests.support.perforce_scene import PerforceScene

# No slash: it parts names. A line end would end a line of what p4 shows as text.
BYTES = sorted(set(range(1, 256)) - set(b"/\n\r"))
NAMES = [os.fsdecode(b"%d_%c_" % (byte, byte)) for byte in BYTES]
LATIN = os.fsdecode("Größe/Zürich.txt".encode("latin-1"))


@pytest.fixture
def odd(lab_perforce: PerforceScene) -> PerforceScene:
    """A scene with a file for every byte, and one below a directory in Latin-1."""
    lab_perforce.submit(dict.fromkeys([*NAMES, LATIN], b"1\n"))
    return lab_perforce


def paths(scene: PerforceScene) -> list[str]:
    return [f"{scene.folder}/{escape_path(name)}" for name in [*NAMES, LATIN]]


def test_every_byte_is_synced_had_and_named_again(odd: PerforceScene) -> None:
    client, change = odd.make_client(), odd.gateway.changes.latest((odd.everything,))
    odd.gateway.files.sync(client.name, change=change, on_progress=lambda _: None)

    assert sorted(odd.had(client.name)) == sorted(paths(odd))
    lines = sorted(os.fsencode(f"{path}#1\n") for path in paths(odd))
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    assert odd.gateway.files.have_list(client.name).digest == digest
    assert odd.gateway.files.exist(tuple(paths(odd)), change=change)
    root = Path(client.root)
    assert all((root / name).read_bytes() == b"1\n" for name in [*NAMES, LATIN])


def test_what_changed_is_found_and_brought_back(odd: PerforceScene) -> None:
    client, change = odd.make_client(), odd.gateway.changes.latest((odd.everything,))
    odd.gateway.files.sync(client.name, change=change, on_progress=lambda _: None)
    place = Path(client.root, LATIN)
    place.chmod(0o644)
    place.write_bytes(b"mine\n")
    new = Path(client.root, os.fsdecode(b"new \xff"))
    new.write_bytes(b"new\n")

    for in_batches in (False, True):
        found = odd.gateway.files.reconcile_preview(
            client.name, untracked=True, in_batches=in_batches
        )
        assert {(f.action, f.path) for f in found} == {
            ("edit", str(place)),
            ("add", str(new)),
        }
    mapped = odd.gateway.clients.mapped_paths(client.name, [str(place), str(new)])
    assert mapped == {str(place), str(new)}
    odd.gateway.files.restore(client.name)
    assert place.read_bytes() == b"1\n"


def test_opened_files_are_listed_shelved_and_opened_again(odd: PerforceScene) -> None:
    client, change = odd.make_client(), odd.gateway.changes.latest((odd.everything,))
    odd.gateway.files.sync(client.name, change=change, on_progress=lambda _: None)
    path = f"{odd.folder}/{LATIN}"
    with odd.at_the_shell(client.name) as shell:
        shell.run("edit", path)
    Path(client.root, LATIN).write_bytes(b"mine\n")
    [opened] = odd.gateway.changes.list_opened(client.name)
    report = odd.gateway.shelves.shelve_opened(client.name, workspace="w")

    assert opened.depot_file == path
    assert [shelf.files for shelf in report.shelves] == [(path,)]
    odd.gateway.changes.revert_server_side(client.name)
    again = odd.gateway.shelves.reopen(
        client.name, [opened], descriptions={}, shelves=report.shelves
    )
    assert again.opened == (path,)
    for change in {shelf.change for shelf in report.shelves}:
        assert [f.depot_file for f in odd.gateway.shelves.list_files(change)] == [path]


def test_a_change_of_such_files_concerns_the_view_they_are_in(
    odd: PerforceScene,
) -> None:
    change = odd.gateway.changes.latest((odd.everything,))
    batch = odd.gateway.changes.submitted_after(change - 1, at_most=1)

    [submitted] = batch.changes
    assert sorted(submitted.paths) == sorted(paths(odd))
    directory = LATIN.partition("/")[0]
    view = DepotView([f"{odd.folder}/{directory}/... //c/..."])
    assert view.touches(submitted.paths)
    assert not view.touches(paths(odd)[:-1])


def test_a_form_with_such_a_view_is_read_whole_and_refused_where_it_is_written(
    tmp_path: Path,
) -> None:
    """The library cannot hand such a form in; whoever restored a server has some."""
    checkpoint_path = tmp_path / "checkpoint"
    rows = checkpoint().replace("//depot/Src", "//depot/S\udcfcc")
    rows = rows.replace("@anna@ 10 10 0 @x@", "@anna@ 10 10 0 @caf\udce9@")
    rows = rows.replace("@Change 3", "@\udcc4nderung 3")
    checkpoint_path.write_bytes(os.fsencode(rows))
    assert restore(tmp_path / "root", checkpoint_path).returncode == 0
    with lab_server(tmp_path, "--admin-user", "root") as server:
        gateway = PerforceGateway(
            PerforceAccount(
                port=f"127.0.0.1:{server.port}", user="anna", password="apple"
            )
        )
        spec = gateway.clients.find("old")
        had = gateway.files.have_list("old")
        [newest] = gateway.changes.submitted_after(2, at_most=1).changes

        assert spec is not None
        assert spec.description == r"caf\xe9"
        assert spec.view == (
            "//depot/S\udcfcc/... //old/...",
            "-//depot/S\udcfcc/no/... //old/no/...",
        )
        line = b"//depot/S\xfcc/main.c#2\n"
        assert had.digest == hashlib.sha256(line).hexdigest()
        assert newest.title == r"\xc4nderung 3"
        with pytest.raises(Refused, match="UTF-8"):
            gateway.clients.save(spec)
