"""Messages for Slack's incoming webhooks, and the meaning of its answers.

Source: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks,
https://docs.slack.dev/reference/block-kit/blocks (limits) and
https://docs.slack.dev/messaging/formatting-message-text (escaping).
"""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

from provisioner.gateways.webhooks.messages import (
    Message,
    Refusal,
    last_fitting,
    shortened,
)

LONGEST_HEADER, LONGEST_SECTION, LONGEST_FIELD, LONGEST_NAME = 150, 3000, 2000, 100
MOST_FIELDS = 10
LONGEST_LINE = 300
_FENCE = "```\n"

escaped = partial(escape, quote=False)
"""What Slack asks for: nothing in a text is a link, a mention or an entity."""

REFUSALS = {
    400: Refusal(sentence="Slack could not read the message."),
    403: Refusal(
        sentence="Slack does not let this address post: its token was replaced, or "
        "administrators of the Slack workspace restrict the channel."
    ),
    404: Refusal(
        sentence="The webhook, or its channel, is gone in Slack. Make another one "
        "there and enter its address.",
        turns_off=True,
    ),
    410: Refusal(
        sentence="Its channel is archived. Choose another one in Slack.",
        turns_off=True,
    ),
}


def payload(message: Message) -> dict[str, Any]:
    """Return the body to post: blocks, and `text` for notifications and old clients."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(message.title, LONGEST_HEADER)},
        {"type": "section", "text": _plain(message.text, LONGEST_SECTION)},
    ]
    if message.facts:
        fields = [_fact(*fact) for fact in message.facts[:MOST_FIELDS]]
        blocks.append({"type": "section", "fields": fields})
    if message.lines:
        blocks.append({"type": "section", "text": _marked(_log(message.lines))})
    if message.links:
        # A button would ask an app of Slack for an answer that we do not give.
        links = "   ".join(
            f"<{escaped(url)}|{escaped(label)}>" for label, url in message.links
        )
        blocks.append({"type": "section", "text": _marked(links)})
    said = f"{message.title}. {message.text}"
    return {
        "text": shortened(said, LONGEST_SECTION, escaped=escaped),
        "blocks": blocks,
    }


def _plain(text: str, limit: int) -> dict[str, Any]:
    fitting = shortened(text, limit, escaped=escaped)
    return {"type": "plain_text", "text": fitting, "emoji": False}


def _marked(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _fact(name: str, value: str) -> dict[str, Any]:
    """Return a fact as text; code formatting keeps the _ and * of a path."""
    name = shortened(name, LONGEST_NAME, escaped=escaped)
    value = value.replace("`", "'").strip() or " "
    value = shortened(value, LONGEST_FIELD - LONGEST_NAME - 5, escaped=escaped)
    return _marked(f"*{name}*\n`{value}`")


def _log(lines: tuple[str, ...]) -> str:
    short = tuple(
        shortened(line.replace("```", "'''"), LONGEST_LINE, escaped=escaped)
        for line in lines
    )
    room = LONGEST_SECTION - 2 * len(_FENCE)
    return _FENCE + "\n".join(last_fitting(short, room)) + "\n```"
