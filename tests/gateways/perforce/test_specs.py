from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from P4 import P4, Map

from provisioner.gateways.perforce.specs import (
    SpecRefused,
    ViewRefused,
    check_client_options,
    check_line_end,
    check_view,
    parse_client_spec,
    rename_view,
    render_client_spec,
    split_view_line,
)
from provisioner.gateways.perforce.types import ClientSpec

NAME = st.text("abcdefgXYZ0129_-+.é", min_size=1, max_size=8).filter(
    lambda name: not set(name) <= {"."} and name[0] not in "-+&" and ".." not in name
)
FOLDER = st.text("abXY019_- é", min_size=1, max_size=8).filter(
    lambda name: name == name.strip() and bool(name) and not name.startswith("-")
)
PRINTABLE_LINE = st.text(
    st.characters(blacklist_categories=["Cc", "Cs"], blacklist_characters='#"'),
    max_size=30,
).map(str.strip)
TEXT = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"),
    max_size=80,
).map(lambda text: text.rstrip("\n"))


@st.composite
def view_lines(draw: st.DrawFn, client: str = "old") -> tuple[str, ...]:
    lines = []
    for number in range(draw(st.integers(1, 4))):
        folders = "/".join(draw(st.lists(FOLDER, min_size=1, max_size=3)))
        tail = draw(st.sampled_from(["...", "*.c", "x/.../*.h", "%%1/%%2.txt", "one"]))
        flag = draw(st.sampled_from(["", "-", "+"])) if number else ""
        depot, right = f"{flag}//depot/{folders}/{tail}", f"//{client}/{folders}/{tail}"
        quote = '"' if " " in folders else ""
        lines.append(f"{quote}{depot}{quote} {quote}{right}{quote}")
    return tuple(lines)


SPECS = st.builds(
    ClientSpec,
    name=NAME,
    owner=NAME,
    root=PRINTABLE_LINE.map(lambda tail: f"/mnt/{tail}"),
    host=st.one_of(st.just(""), NAME),
    description=TEXT,
    options=st.sampled_from(
        [
            "noallwrite noclobber nocompress unlocked nomodtime normdir",
            "allwrite clobber compress locked modtime rmdir noaltsync",
        ]
    ),
    submit_options=st.sampled_from(["submitunchanged", "leaveunchanged+reopen"]),
    line_end=st.sampled_from(["local", "unix", "share"]),
    stream=st.one_of(st.just(""), NAME.map(lambda name: f"//streams/{name}")),
    type=st.sampled_from(["", "readonly", "partitioned-jnl"]),
    view=view_lines(),
)


@given(SPECS)
def test_a_spec_survives_its_form(spec: ClientSpec) -> None:
    assert parse_client_spec(render_client_spec(spec)) == spec


@given(SPECS)
def test_p4_reads_the_form_the_same_way(spec: ClientSpec) -> None:
    fields = P4().parse_spec("client", render_client_spec(spec))

    assert fields["Client"] == spec.name
    assert fields["Root"] == spec.root
    assert fields["Options"] == spec.options
    assert tuple(fields["View"]) == spec.view
    assert fields.get("Host", "") == spec.host


def test_a_form_written_by_p4_is_read() -> None:
    text = (
        "# A Perforce Client Specification.\n#\n\n"
        "Client:\tdemo\n\nUpdate:\t2026/11/21 09:00:00\n\nOwner:\talice\n\n"
        "Host:\n\nDescription:\n\tCreated by alice.\n\t\n\tTwice.\n\n"
        "Root:\t/mnt/demo tree\n\nLineEnd:\tunix\n\n"
        "View:\n\t//depot/main/... //demo/main/...\n"
        '\t-"//depot/main/a b/..." "//demo/main/a b/..."\n'
    )

    spec = parse_client_spec(text)

    assert spec.name == "demo"
    assert spec.host == ""
    assert spec.description == "Created by alice.\n\nTwice."
    assert spec.root == "/mnt/demo tree"
    assert spec.line_end == "unix"
    assert len(spec.view) == 2


@pytest.mark.parametrize("text", ["", "no form at all", "Owner:\talice\n"])
def test_text_that_is_no_form_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_client_spec(text)


@pytest.mark.parametrize(
    "change",
    [
        {"root": "/mnt/a\n\nOptions:\tallwrite"},
        {"view": ("//d/... //c/...\nHost:\tx",)},
    ],
)
def test_a_value_cannot_smuggle_in_another_field(change: dict[str, object]) -> None:
    values: dict[str, object] = {"name": "c", "owner": "alice", "root": "/mnt/c"}
    spec = ClientSpec(**{**values, **change})  # type: ignore[arg-type]

    with pytest.raises(ValueError):
        render_client_spec(spec)


@given(view_lines(), st.sampled_from(["a/b.c", "x/y/z.h", "1/2.txt", "one", "q"]))
def test_a_renamed_view_maps_the_same_files(view: tuple[str, ...], tail: str) -> None:
    renamed = rename_view(view, old="old", new="ws-new")

    before, after = Map(list(view)), Map(list(renamed))
    for line in view:
        folder = split_view_line(line).depot.rsplit("/", 1)[0]
        path = f"{folder}/{tail}"
        expected = before.translate(path)
        if expected is not None:
            expected = expected.replace("//old/", "//ws-new/", 1)
        assert after.translate(path) == expected


@given(view_lines())
def test_renaming_there_and_back_changes_nothing(view: tuple[str, ...]) -> None:
    there = rename_view(view, old="old", new="new")

    back = rename_view(there, old="new", new="old")

    assert [split_view_line(line) for line in back] == [
        split_view_line(line) for line in view
    ]


def test_renaming_refuses_a_line_of_another_client() -> None:
    with pytest.raises(ViewRefused) as caught:
        rename_view(("//depot/... //older/...",), old="old", new="new")

    assert caught.value.code == "view_other_client"


@given(view_lines())
def test_a_sound_view_passes(view: tuple[str, ...]) -> None:
    check_view(view)


@given(st.lists(st.text('/.*%1ab-+"@ ', max_size=12), max_size=3).map(tuple))
def test_any_text_either_passes_or_is_refused_with_a_reason(
    view: tuple[str, ...],
) -> None:
    refusal = None
    try:
        check_view(view)
    except ViewRefused as caught:
        refusal = caught

    if refusal is None:
        assert Map(list(view)).count() >= 1
    else:
        assert re.fullmatch(r"[a-z_]+", refusal.code)
        assert refusal.sentence.endswith((".", "..."))


@pytest.mark.parametrize(
    ("view", "code"),
    [
        ((), "view_empty"),
        (("", "  "), "view_empty"),
        (("-//depot/a/... //c/a/...",), "view_empty"),
        (("//... //c/...",), "view_whole_server"),
        (("//depot/a/... //c/a/...", "+//... //c/..."), "view_whole_server"),
        (("//*/main/... //c/*/main/...",), "view_whole_server"),
        (("//depot/main/...",), "view_line_incomplete"),
        (("//depot/my docs/... //c/...",), "view_unquoted_spaces"),
        (('"//depot/my docs/... //c/...',), "view_quotes"),
        (("depot/main/... //c/main/...",), "view_syntax"),
        (("//depot/main/... c/main/...",), "view_syntax"),
        (("//depot//main/... //c/main/...",), "view_syntax"),
        (("//depot/../main/... //c/main/...",), "view_syntax"),
        (("//depot/main/...@12 //c/main/...",), "view_revision"),
        (("//depot/main/... //c/main/*",), "view_wildcards"),
        (("//depot/%%1/%%2 //c/%%1/%%1",), "view_wildcards"),
        (("//depot/%%1/%%1 //c/%%1/%%1",), "view_wildcards"),
        (("//depot/main/...* //c/main/...*",), "view_wildcards"),
        (("//depot/a/... //c/a/...", "//depot/b/... //d/b/..."), "view_other_client"),
        (("//depot/a/* //*/a",), "view_other_client"),
    ],
)
def test_an_unsound_view_is_refused(view: tuple[str, ...], code: str) -> None:
    with pytest.raises(ViewRefused) as caught:
        check_view(view)

    assert caught.value.code == code


def test_an_exclusion_may_begin_with_a_wildcard() -> None:
    check_view(("//depot/main/... //c/main/...", "-//.../*.o //c/.../*.o"))


def test_a_comment_behind_a_mapping_is_no_part_of_it() -> None:
    line = split_view_line("//depot/a/... //c/a/... ## the sources")

    assert str(line) == "//depot/a/... //c/a/..."


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (
            "noallwrite noclobber nocompress locked nomodtime normdir",
            "client_option_unusable",
        ),
        (
            "noallwrite noclobber nocompress unlocked nomodtime normdir altsync",
            "client_option_unusable",
        ),
        ("noallwrite fast", "client_option_unknown"),
        ("noallwrite allwrite", "client_option_pair"),
        ("", "client_option_pair"),
    ],
)
def test_unusable_client_options_are_refused(options: str, code: str) -> None:
    with pytest.raises(SpecRefused) as caught:
        check_client_options(options)

    assert caught.value.code == code


def test_usual_client_options_pass() -> None:
    check_client_options("noallwrite noclobber nocompress unlocked nomodtime normdir")
    check_client_options(
        "allwrite clobber compress unlocked modtime rmdir noaltsync",
    )


def test_line_ends_are_the_five_of_perforce() -> None:
    check_line_end("share")
    with pytest.raises(SpecRefused):
        check_line_end("dos")


def test_a_form_of_names_that_are_not_utf8_is_stored_and_had_back() -> None:
    spec = ClientSpec(
        name="ws",
        owner="ann",
        root="/w",
        description=r"caf\xe9",
        view=("//depot/Gr\udcf6\udcdfe/... //ws/...", r"//depot/\xe9/... //ws/x/..."),
    )

    form = render_client_spec(spec)

    form.encode()
    assert parse_client_spec(form) == spec
