"""What is recommended for a role, by scores, weights and facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from provisioner.advice.kinds import BLOCK, Criterion, Doubt, Protocol, Role
from provisioner.advice.recommending import (
    DEFAULT_WEIGHTS,
    MOST_WEIGHT,
    ReaderFacts,
    Recommendation,
    Weights,
    archive_bytes_ahead,
    recommend,
    recommend_all,
    remarks,
)
from provisioner.advice.scores import APPLIES, BEST, score_of
from provisioner.advice.sources import SOURCES

NOTHING = ReaderFacts()
TIB = 1 << 40

weights = st.fixed_dictionaries(
    {criterion: st.integers(0, MOST_WEIGHT) for criterion in Criterion}
)
roles = st.sampled_from(Role)
some_facts = st.builds(ReaderFacts, shares_archives=st.booleans())


def usual(role: Role, **facts: Any) -> Recommendation:
    return recommend(role, weights=DEFAULT_WEIGHTS, facts=replace(NOTHING, **facts))


def place(found: Recommendation, protocol: Protocol) -> int:
    return [rated.protocol for rated in found.ranked].index(protocol)


def texts(found: Recommendation) -> str:
    return " ".join(said.text for said in found.doubts)


# --- the scores


def test_every_score_has_a_source_or_says_that_none_has_it() -> None:
    for role in Role:
        for protocol in Protocol:
            for criterion in Criterion:
                score = score_of(role, protocol, criterion)
                assert score.why
                assert (score.value is None) == (score.doubt == Doubt.UNKNOWN)
                if score.doubt in (Doubt.STATED, Doubt.INFERRED):
                    assert score.source in SOURCES, (role, protocol, criterion)
                else:
                    assert score.source is None, (role, protocol, criterion)


def test_sources_have_codes_of_their_own() -> None:
    assert len({source.code for source in SOURCES}) == len(SOURCES)


# --- the order


@given(role=roles, weights=weights, facts=some_facts)
def test_a_recommendation_never_contradicts_the_scores(
    role: Role, weights: Weights, facts: ReaderFacts
) -> None:
    found = recommend(role, weights=weights, facts=facts)
    totals = {
        rated.protocol: sum(
            weights[c] * score_of(role, rated.protocol, c).low for c in APPLIES[role]
        )
        for rated in found.ranked
    }

    assert [rated.low for rated in found.ranked] == sorted(
        totals.values(), reverse=True
    )
    if found.best is None:
        assert found.most == 0
        return
    assert found.best.excluded is None
    assert totals[found.best.protocol] == max(totals.values())
    if found.is_certain:
        others = [r for r in found.ranked if r is not found.best]
        assert all(r.high <= found.best.low for r in others)


@given(
    role=roles,
    weights=weights,
    facts=some_facts,
    criterion=st.sampled_from(Criterion),
    more=st.integers(1, MOST_WEIGHT),
)
def test_more_weight_never_makes_the_best_by_that_criterion_worse(
    role: Role, weights: Weights, facts: ReaderFacts, criterion: Criterion, more: int
) -> None:
    assume(weights[criterion] + more <= MOST_WEIGHT)
    before = recommend(role, weights=weights, facts=facts)
    heavier = {**weights, criterion: weights[criterion] + more}
    after = recommend(role, weights=heavier, facts=facts)
    scores = {
        rated.protocol: score_of(role, rated.protocol, criterion).low
        for rated in before.ranked
    }

    for protocol, score in scores.items():
        if score == max(scores.values()):
            assert place(after, protocol) <= place(before, protocol)


@given(role=roles, weights=weights, other=st.integers(0, MOST_WEIGHT))
def test_a_criterion_that_does_not_count_changes_nothing(
    role: Role, weights: Weights, other: int
) -> None:
    for criterion in set(Criterion) - set(APPLIES[role]):
        changed = {**weights, criterion: other}
        before = recommend(role, weights=weights, facts=NOTHING)
        after = recommend(role, weights=changed, facts=NOTHING)
        assert after == before


@given(weights=weights)
def test_no_total_is_more_than_that_of_a_protocol_best_by_all(weights: Weights) -> None:
    for found in recommend_all(weights, NOTHING):
        assert all(r.low <= r.high <= found.most for r in found.ranked)


def test_without_weights_nothing_is_recommended() -> None:
    none = dict.fromkeys(Criterion, 0)
    for found in recommend_all(none, NOTHING):
        assert (found.best, found.is_certain, found.reasons) == (None, False, ())


def test_an_unknown_score_could_overtake_and_that_is_said() -> None:
    found = usual(Role.DB)

    assert found.best is not None
    assert not found.is_certain
    assert found.rated(Protocol.LOCAL).high > found.best.low
    assert "Local SSD could reach" in texts(found)
    assert "cost is not known" in texts(found)


def test_performance_alone_is_as_perforce_says() -> None:
    alone = {c: MOST_WEIGHT * (c == Criterion.PERFORMANCE) for c in Criterion}
    best = {
        found.role: found.best.protocol
        for found in recommend_all(alone, NOTHING)
        if found.best is not None
    }
    assert best == {
        **dict.fromkeys(Role, Protocol.LOCAL),
        Role.WORKSPACES: Protocol.NFS3,
    }


def test_reasons_name_what_counts_and_where_the_next_is_worse() -> None:
    found = usual(Role.DEPOTS)

    assert found.best is not None
    assert found.best.protocol == Protocol.NFS3
    assert len(found.reasons) == len(APPLIES[Role.DEPOTS])
    assert any("NFSv4.1: good." in said.text for said in found.reasons)


# --- exclusions, facts and doubts


def test_workspaces_are_mounted_as_files() -> None:
    found = usual(Role.WORKSPACES)
    assert {rated.protocol for rated in found.excluded} == set(BLOCK)


def test_shared_archives_are_reached_from_two_hosts() -> None:
    assert usual(Role.DEPOTS).excluded == ()
    shared = usual(Role.DEPOTS, shares_archives=True)
    assert {rated.protocol for rated in shared.excluded} == set(BLOCK)
    assert usual(Role.DB, shares_archives=True).excluded == ()


def test_a_database_over_nfs_is_never_recommended_without_doubts() -> None:
    easy = {**dict.fromkeys(Criterion, 0), Criterion.MANAGEABILITY: 5}
    easy[Criterion.PERFORMANCE] = 1
    found = recommend(Role.DB, weights=easy, facts=NOTHING)

    assert found.best is not None
    assert found.best.protocol == Protocol.NFS3
    said = texts(found)
    assert "flock" in said
    assert "your weights outvote that" in said
    assert "local_lock=all" in said


def test_a_lun_cannot_be_cloned_into_a_sandbox() -> None:
    assert "no sandboxes" in texts(usual(Role.DB))
    assert "no sandboxes" not in texts(usual(Role.DEPOTS))


def test_more_commands_than_anybody_published_are_a_doubt() -> None:
    assert "Measure first" in texts(usual(Role.DB, commands_a_day=9_000_000))
    assert "Measure first" not in texts(usual(Role.DB, commands_a_day=90_000))
    assert "Measure first" not in texts(usual(Role.DEPOTS, commands_a_day=9_000_000))


@pytest.mark.parametrize(
    ("size", "growth", "ahead"),
    [(None, 10, None), (TIB, None, None), (TIB, 0, TIB), (1000, 100, 8000)],
)
def test_growth_is_reckoned_where_it_is_said(
    size: int | None, growth: int | None, ahead: int | None
) -> None:
    facts = ReaderFacts(archive_bytes=size, growth_percent=growth)
    assert archive_bytes_ahead(facts) == ahead


def test_archives_that_outgrow_a_volume_are_spread() -> None:
    large = usual(Role.DEPOTS, archive_bytes=90 * TIB, growth_percent=20)
    assert "Spread depots" in texts(large)
    small = usual(Role.DEPOTS, archive_bytes=9 * TIB, growth_percent=20)
    assert "Spread depots" not in texts(small)
    unsaid = usual(Role.DEPOTS, archive_bytes=90 * TIB)
    assert "it is left out" in texts(unsaid)


def test_facts_that_are_not_said_say_nothing() -> None:
    assert remarks(NOTHING) == []


def test_facts_are_held_against_what_was_published() -> None:
    said = " ".join(
        each.text
        for each in remarks(
            ReaderFacts(
                commands_a_day=90_000,
                users=1000,
                db_bytes=20 << 30,
                archive_bytes=TIB,
                growth_percent=0,
                is_distributed=True,
            )
        )
    )
    assert "within what NetApp published" in said
    assert "62.5 GiB of memory. The database fits" in said
    assert "Each edge server" in said


def test_a_database_larger_than_memory_reads_from_storage() -> None:
    [said] = remarks(ReaderFacts(users=10, db_bytes=TIB))
    assert "reads reach the storage" in said.text


def test_the_best_of_all_criteria_has_the_most() -> None:
    found = usual(Role.DEPOTS)
    assert found.most == BEST * sum(DEFAULT_WEIGHTS.values())
