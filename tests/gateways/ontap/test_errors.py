"""Codes, words and statuses of ONTAP become the error that says what to do next."""

from __future__ import annotations

import pytest

from provisioner.gateways.errors import (
    AlreadyExists,
    AuthFailed,
    Busy,
    GatewayError,
    InUse,
    LimitReached,
    NotFound,
    OutOfSpace,
    Refused,
)
from provisioner.gateways.ontap.errors import CODES, GENERIC_CODES, STATUSES, refusal


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("1", AlreadyExists),
        ("917526", AlreadyExists),
        ("525059", AlreadyExists),
        ("4", NotFound),
        ("524601", NotFound),
        ("1638400", NotFound),
        ("1638600", NotFound),
        ("1638503", NotFound),
        ("917508", NotFound),
        ("918271", NotFound),
        ("1703954", NotFound),
        ("2621462", NotFound),
        ("13107405", Busy),
        ("524486", Busy),
        ("8454210", Busy),
        ("111415208", Busy),
        ("524597", Busy),
        ("524615", InUse),
        ("1638555", InUse),
        ("1638543", InUse),
        ("8", InUse),
        ("6691623", AuthFailed),
        ("6", Refused),
        ("13565983", Refused),
        ("918252", Refused),
        ("918247", Refused),
        ("525062", LimitReached),
        ("1704040", Refused),
        ("262179", Refused),
        ("917536", Refused),
    ],
)
def test_a_code_says_what_to_do_next(code: str, error: type[GatewayError]) -> None:
    problem = refusal("volume create", code=code, message="")
    assert type(problem) is error
    assert problem.remote_code == code
    assert problem.system == "ontap"
    assert problem.operation == "volume create"


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("The volume is Temporarily Locked by another operation.", Busy),
        ("There is not enough space in aggregate aggr1.", OutOfSpace),
        ("Cannot exceed the maximum number of volumes.", LimitReached),
        ("A FlexClone license is required.", Refused),
        ("It is the source endpoint of one or more SnapMirror relationships.", InUse),
        ("You must delete the SnapMirror relationships before deleting.", InUse),
        ('Junction path "/ws/a" is already in use.', Refused),
    ],
)
@pytest.mark.parametrize("code", ["", "917536", "460770", "524597", "2", "777"])
def test_words_decide_where_the_code_says_nothing(
    code: str, message: str, error: type[GatewayError]
) -> None:
    problem = refusal("volume create", code=code, message=message)
    assert type(problem) is error
    assert message in problem.sentence


def test_a_code_that_says_something_beats_the_words() -> None:
    problem = refusal(
        "snapshot create",
        code="525059",
        message="maximum number of something",
        http_status=409,
    )
    assert type(problem) is AlreadyExists


@pytest.mark.parametrize(
    ("http_status", "error"),
    [
        (401, AuthFailed),
        (403, Refused),
        (429, Busy),
        (500, Busy),
        (503, Busy),
        (418, Refused),
    ],
)
def test_the_status_decides_where_there_is_nothing_else(
    http_status: int, error: type[GatewayError]
) -> None:
    problem = refusal("volume find", code="", message="", http_status=http_status)
    assert type(problem) is error
    assert problem.remote_code == f"HTTP {http_status}"


def test_a_404_without_a_code_of_ontap_is_not_a_proof_of_absence() -> None:
    problem = refusal("volume get", code="", message="", http_status=404)
    assert not isinstance(problem, NotFound)


def test_an_unknown_code_is_refused_with_ontaps_own_words() -> None:
    problem = refusal("volume create", code="987654", message="The moon is full.")
    assert type(problem) is Refused
    assert problem.sentence == (
        "ONTAP refused the request. ONTAP says: The moon is full."
    )


def test_every_meaning_is_a_sentence() -> None:
    tables = (CODES, GENERIC_CODES, STATUSES)
    sentences = [meaning.sentence for table in tables for meaning in table.values()]
    for sentence in sentences:
        assert sentence[0].isupper()
        assert sentence.endswith((".", ")."))


def test_codes_are_digits_and_stand_in_one_table() -> None:
    assert all(code.isdigit() for code in {*CODES, *GENERIC_CODES})
    assert not set(CODES) & set(GENERIC_CODES)
