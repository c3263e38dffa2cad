"""Names that a server takes, and those that it refuses, for every kind of thing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from P4 import P4

from tests.support.lab_perforce import LabServer, lab_server, refused

FORMS = {
    "client": "Client: {}\nRoot: /nowhere\nView:\n",
    "label": "Label: {}\nOwner: cloneyard\nView:\n\t//depot/...\n",
    "branch": "Branch: {}\nOwner: cloneyard\nView:\n\t//depot/a/... //depot/b/...\n",
    "depot": "Depot: {}\nType: local\nMap: x/...\n",
    "user": "User: {}\nEmail: a@b\nFullName: x\n",
    "group": "Group: {}\nUsers:\n\tcloneyard\n",
}
FORCED = {"user": ("-f",)}


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[P4]:
    with lab_server(tmp_path_factory.mktemp("identifiers")) as server:
        yield as_admin(server)


def as_admin(server: LabServer) -> P4:
    return server.connect(client="neutral")


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("-dash", 6148),
        ("with@at", 6151),
        ("with*star", 6155),
        ("with,comma", 6629),
        ("with%percent", 6786),
        ("1234", 6156),
        ("two words", 4140),
    ],
)
def test_names_that_nothing_can_have(
    admin: P4, kind: str, name: str, message: int
) -> None:
    admin.input = FORMS[kind].format(name)

    assert refused(admin, kind, "-i", *FORCED.get(kind, ())) == message
    assert message != 4140 or f"Error in {kind}" in str(admin.errors[0])


@pytest.mark.parametrize("kind", FORMS)
def test_names_that_everything_can_have(admin: P4, kind: str) -> None:
    for name in (f"{kind}.1-a_b", f"{kind}é~+=!"):
        admin.input = FORMS[kind].format(name)
        admin.run(kind, "-i", *FORCED.get(kind, ()))


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("client", "a/b", 6152),
        ("depot", "a/b", 6152),
        ("user", "a/b", 6152),
        ("label", "a//b", 6153),
        ("branch", "a/../b", 6154),
    ],
)
def test_slashes_are_for_labels_and_branches(
    admin: P4, kind: str, name: str, message: int
) -> None:
    admin.input = FORMS[kind].format(name)

    assert refused(admin, kind, "-i", *FORCED.get(kind, ())) == message


def test_a_label_may_have_a_slash_and_no_bad_name_by_way_of_tag(admin: P4) -> None:
    admin.input = FORMS["label"].format("releases/1.0")
    admin.run("label", "-i")

    assert refused(admin, "tag", "-l", "with,comma", "//depot/...") == 6629


def test_a_name_stands_for_one_kind_of_thing(admin: P4) -> None:
    admin.input = FORMS["label"].format("taken")
    admin.run("label", "-i")

    for kind in ("client", "branch", "depot"):
        admin.input = FORMS[kind].format("taken")
        assert refused(admin, kind, "-i") == 6180
    for kind in ("user", "group"):
        admin.input = FORMS[kind].format("taken")
        admin.run(kind, "-i", *FORCED.get(kind, ()))
