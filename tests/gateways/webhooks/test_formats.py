"""Messages to Slack and Teams keep to what both document, whatever is said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.webhooks import slack, teams
from provisioner.gateways.webhooks.messages import Message
from tests.support.chats import check_slack, check_teams

TEXT = st.text(min_size=1, max_size=30) | st.builds(
    lambda text, times: text * times,
    st.text(alphabet="<>&`*_é🎉\n ab", min_size=1, max_size=30),
    st.integers(min_value=1, max_value=200),
)
MESSAGES = st.builds(
    Message,
    title=TEXT,
    text=TEXT,
    facts=st.lists(st.tuples(TEXT.map(lambda text: text[:40]), TEXT), max_size=15).map(
        tuple
    ),
    links=st.just((("Open the workspace", "https://c.example/workspaces/1/?a=1&b=2"),)),
    lines=st.lists(TEXT, max_size=40).map(tuple),
)


@given(MESSAGES)
def test_whatever_is_said_fits_into_the_blocks_of_slack(message: Message) -> None:
    check_slack(slack.payload(message))


@given(MESSAGES)
def test_whatever_is_said_fits_into_a_card_of_teams(message: Message) -> None:
    check_teams(teams.payload(message))


def test_slack_takes_nothing_for_a_mention_or_markup() -> None:
    said = Message(
        title="<!channel> & co",
        text="a < b",
        facts=(("Path", "/mnt/_a_/`b`*"),),
        links=(("Open", "https://c.example/?a=1&b=2"),),
        lines=("```<@U1>", "end"),
    )
    payload = slack.payload(said)
    assert payload["text"] == "&lt;!channel&gt; &amp; co. a &lt; b"
    header, section, facts, log, links = payload["blocks"]
    assert header["text"]["text"] == "&lt;!channel&gt; &amp; co"
    assert section["text"] == {
        "type": "plain_text",
        "text": "a &lt; b",
        "emoji": False,
    }
    assert facts["fields"][0]["text"] == "*Path*\n`/mnt/_a_/'b'*`"
    assert log["text"]["text"] == "```\n'''&lt;@U1&gt;\nend\n```"
    assert links["text"]["text"] == "<https://c.example/?a=1&amp;b=2|Open>"


def test_what_does_not_fit_is_cut_between_signs_and_logs_keep_their_end() -> None:
    said = Message(title="&" * 200, text="x", lines=("a" * 250,) * 30 + ("error",))
    header, _, log = slack.payload(said)["blocks"]
    assert header["text"]["text"].removesuffix("…").replace("&amp;", "") == ""
    assert log["text"]["text"].endswith("\nerror\n```")
    card = teams.payload(said)["attachments"][0]["content"]
    assert card["body"][-1]["inlines"][0]["text"] == "error"
    assert card["version"] == "1.2"
