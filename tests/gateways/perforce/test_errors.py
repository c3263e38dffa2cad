from __future__ import annotations

import pytest

from provisioner.gateways.errors import (
    AuthFailed,
    Busy,
    GatewayError,
    InUse,
    NotFound,
    Refused,
    Unreachable,
)
from provisioner.gateways.perforce.errors import (
    LEFT_BEHIND_BY_SYNC,
    ClientHasOpenedFiles,
    ClientHasPendingChanges,
    ClientHasShelves,
    ClientIsLocked,
    NotPermitted,
    ServerMessage,
    failures,
    translate,
)

FAILED, WARNING, INFO = 3, 2, 1


def message(
    number: int, text: str = "Words.", *, severity: int = FAILED, generic: int = 0
) -> ServerMessage:
    return ServerMessage(id=number, severity=severity, generic=generic, text=text)


def error_of(*messages: ServerMessage) -> GatewayError:
    return translate(list(messages), operation="client -d", user="robot")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (7189, AuthFailed),
        (7206, AuthFailed),
        (7480, AuthFailed),
        (6267, AuthFailed),
        (6170, NotFound),
        (6178, NotFound),
        (6179, NotFound),
        (6243, NotFound),
        (6215, ClientHasOpenedFiles),
        (6591, ClientHasPendingChanges),
        (6668, ClientHasShelves),
        (6346, InUse),
        (7805, Busy),
        (6597, Busy),
        (4129, Busy),
        (4128, Refused),
        (6185, NotPermitted),
        (6238, ClientIsLocked),
        (6239, Refused),
        (7038, Refused),
    ],
)
def test_a_number_decides_whatever_the_words(
    number: int, expected: type[GatewayError]
) -> None:
    error = error_of(message(number, "Worte einer anderen Sprache.", generic=99))

    assert type(error) is expected
    assert error.remote_code == str(number)
    assert error.system == "perforce"
    assert error.operation == "client -d"


@pytest.mark.parametrize(
    ("generic", "expected"),
    [
        (1, Refused),
        (2, NotFound),
        (3, Refused),
        (4, Refused),
        (5, Refused),
        (6, Refused),
        (17, NotFound),
        (33, Busy),
        (34, Refused),
        (35, Refused),
        (36, Refused),
        (37, Refused),
        (38, Unreachable),
        (39, Refused),
    ],
)
def test_an_unlisted_number_goes_by_its_generic_code(
    generic: int, expected: type[GatewayError]
) -> None:
    assert type(error_of(message(9999, generic=generic))) is expected


def test_a_file_that_could_not_be_written_is_no_fault_of_the_server() -> None:
    error = error_of(message(1, "open for write: /x: Permission denied", generic=33))

    assert type(error) is Refused


def test_a_socket_that_broke_is_unreachable() -> None:
    error = error_of(message(1, "write: socket: Broken pipe", generic=38))

    assert type(error) is Unreachable


def test_a_listed_number_speaks_for_the_others() -> None:
    error = error_of(message(9999, "Details."), message(6215, "Files opened."))

    assert type(error) is ClientHasOpenedFiles
    assert error.remote_code == "6215"


def test_several_failures_are_named_up_to_ten_and_once_each() -> None:
    texts = [f"file {number}" for number in range(13)]

    error = error_of(*(message(8196, text, generic=34) for text in [*texts, "file 1"]))

    assert "file 0; file 1; " in error.sentence
    assert "file 9; and 3 more." in error.sentence
    assert error.sentence.count("file 1;") == 1


def test_a_sentence_is_one_line() -> None:
    error = error_of(message(9999, "First.\n\tSecond.\n"))

    assert error.sentence == "First. Second."


def test_our_sentences_name_the_user() -> None:
    assert "robot" in error_of(message(7189)).sentence


def test_braces_of_the_server_are_left_alone() -> None:
    assert error_of(message(9999, "No {such} thing.")).sentence == "No {such} thing."
    assert "{such}" in error_of(message(4128, "No {such} thing.")).sentence


def test_warnings_and_remarks_are_answers() -> None:
    remarks = [message(6532, severity=WARNING), message(6370, severity=INFO)]

    assert failures(remarks) == []


def test_some_remarks_are_failures_all_the_same() -> None:
    refused = message(6513, severity=WARNING)
    still_open = message(6346, severity=INFO)
    opened = message(6491, severity=INFO)

    assert failures([refused, still_open, opened]) == [refused, still_open]
    assert failures([opened], also=LEFT_BEHIND_BY_SYNC) == [opened]


def test_an_accepted_number_is_no_failure() -> None:
    assert failures([message(6178)], accepted={6178}) == []


@pytest.mark.parametrize(
    ("number", "limit"),
    [(4128, "MaxResults"), (4157, "MaxScanRows"), (6597, "MaxLockTime")],
)
def test_a_limit_is_named_with_whose_it_is(number: int, limit: str) -> None:
    message = ServerMessage(id=number, severity=3, generic=35, text="Too much.")
    error = translate([message], operation="changes", user="ann")

    assert f"a higher {limit} of ann's group" in error.sentence
