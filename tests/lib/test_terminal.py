from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lib.terminal import Span, harmless_page, painted_lines, shown_text

ESC = "\x1b"
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
PRINTED = st.lists(
    st.one_of(
        st.text(max_size=5),
        st.sampled_from([ESC, ESC + "[", ESC + "]", "31m", "\r", "\n", "\x9b"]),
        st.sampled_from(TURNING),
    )
).map("".join)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        (f"{ESC}[1;31mred{ESC}[0m {ESC}[38;2;1;2;3mrgb{ESC}[K", "red rgb"),
        (f"{ESC}]0;a title\x07x{ESC}]8;;http://a{ESC}\\link{ESC}]8;;{ESC}\\", "xlink"),
        (f"{ESC}Pq#0;2;0{ESC}\\sixel{ESC}(B{ESC}7{ESC}c", "sixel"),
        ("10%\r20%\r30%\r\ndone\r\n", "30%\ndone\n"),
        ("a\x00b\x07c\x08d\x7f", "a␀b␇c␈d␡"),
        ("safe\u202egnp.exe\u2066", "safe\ufffdgnp.exe\ufffd"),
        (f"cut off{ESC}", "cut off␛"),
        ("\x9b31mold", "\ufffd31mold"),
    ],
)
def test_what_is_shown_is_what_a_terminal_would_show(printed: str, shown: str) -> None:
    assert shown_text(printed) == shown


@given(PRINTED)
def test_nothing_that_controls_anything_gets_out(printed: str) -> None:
    shown = shown_text(printed)
    kinds = {unicodedata.category(letter) for letter in shown if letter not in "\n\t"}
    assert kinds.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert not set(TURNING) & set(shown)
    assert shown_text(shown) == shown


def test_a_hostile_text_takes_no_time() -> None:
    """Every escape could begin something that never ends."""
    for hostile in (ESC + "]", ESC + "[0", ESC + "P", ESC + "[", ESC + " "):
        shown_text(hostile * 50_000)


@given(st.text(st.characters(codec="utf-8")))
def test_a_page_has_no_control_characters_and_is_otherwise_as_it_was(page: str) -> None:
    shown = harmless_page(page.encode("utf-8", "surrogatepass").replace(b"\xed", b"?"))
    text = shown.decode(errors="replace")
    assert not [
        c for c in text if unicodedata.category(c) == "Cc" and c not in "\t\n\r"
    ]
    assert not set(text) & set(TURNING)


def test_what_steers_a_terminal_is_a_picture_on_a_page() -> None:
    page = "<p>a\x1b]0;b\x07\x9bc\u202ed\x7f</p>\r\n\té".encode()
    assert harmless_page(page).decode() == "<p>a␛]0;b␇\ufffdc\ufffdd␡</p>\r\n\té"


@pytest.mark.parametrize(
    ("printed", "lines"),
    [
        ("plain", [[("plain", "")]]),
        (
            f"a {ESC}[1;31merror{ESC}[0m b",
            [[("a ", ""), ("error", "ansi-red ansi-bold"), (" b", "")]],
        ),
        (
            f"{ESC}[33mone\ntwo{ESC}[m three\n",
            [[("one", "ansi-yellow")], [("two", "ansi-yellow"), (" three", "")], []],
        ),
        (f"{ESC}[91mbright", [[("bright", "ansi-red")]]),
        (f"{ESC}[38;5;196mof many", [[("of many", "ansi-red")]]),
        (f"{ESC}[38;5;244mgray", [[("gray", "")]]),
        (f"{ESC}[38;2;0;200;40;4mtrue", [[("true", "ansi-green ansi-underline")]]),
        (f"{ESC}[38:2:10:10:250mtrue", [[("true", "ansi-blue")]]),
        (f"{ESC}[41;97mon red", [[("on red", "ansi-white")]]),
        (f"{ESC}[32m10%\r20%{ESC}[0m\r\n", [[("20%", "ansi-green")], []]),
        (
            f"{ESC}[2mdim{ESC}[22;3mslanted",
            [[("dim", "ansi-dim"), ("slanted", "ansi-italic")]],
        ),
        (f"{ESC}[38;5mcut {ESC}[38mcut", [[("cut ", ""), ("cut", "")]]),
        (f"{ESC}[{'9' * 5000}mtoo long", [[("too long", "")]]),
        (f"{ESC}]0;a title\x07x<b>\x07", [[("x<b>␇", "")]]),
    ],
)
def test_a_terminal_s_colors_become_names(
    printed: str, lines: list[list[tuple[str, str]]]
) -> None:
    assert list(painted_lines(printed)) == [
        [Span(*span) for span in line] for line in lines
    ]


@given(PRINTED)
def test_colors_let_nothing_out_either(printed: str) -> None:
    lines = list(painted_lines(printed))
    shown = "".join(span.text for line in lines for span in line)
    kinds = {unicodedata.category(letter) for letter in shown if letter != "\t"}
    assert kinds.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert len(lines) == printed.count("\n") + 1
