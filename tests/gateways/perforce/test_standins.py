"""Names of clients that stand in for another: ours prove themselves, others do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.perforce.standins import Purpose, StandIns
from provisioner.gateways.perforce.types import ClientSpec

OURS = StandIns(client="cy-main-w1a2b3c", tag="a-tag", secret="not told")


def client(name: str, description: str = "For the workspace (a-tag).") -> ClientSpec:
    return ClientSpec(name=name, owner="u", root="/r", description=description)


def test_each_name_is_new_and_proves_itself() -> None:
    names = {OURS.new_name(purpose) for purpose in Purpose for _ in range(20)}
    assert len(names) == 20 * len(Purpose)
    assert all(OURS.is_ours(client(name)) for name in names)


def test_what_does_not_say_whose_it_is_is_a_strangers() -> None:
    # The name of one of ours can be seen, and used once ours has gone.
    assert not OURS.is_ours(client(OURS.new_name(Purpose.BISECTION_STEP), "Mine."))


def test_nobody_makes_a_name_up_without_the_secret() -> None:
    name = OURS.new_name(Purpose.COMPARE)
    others = StandIns(client=OURS.client, tag=OURS.tag, secret="guessed")
    assert not others.has_made(name)
    for made_up in (
        name.replace("compare", "transfer"),
        name[:-1] + ("0" if name[-1] != "0" else "1"),
        name + "0",
        name.replace("w1a2b3c", "w1a2b3d"),
        f"{OURS.client}-compare",
        f"{OURS.client}-look",
        OURS.client,
    ):
        assert not OURS.has_made(made_up), made_up


@given(
    nonce=st.text("0123456789abcdef", min_size=8, max_size=8),
    proof=st.text("0123456789abcdef", min_size=16, max_size=16),
)
def test_a_guess_does_not_hit(nonce: str, proof: str) -> None:
    assert not OURS.has_made(f"{OURS.client}-compare-{nonce}{proof}")
