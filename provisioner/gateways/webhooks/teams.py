"""Messages for a Microsoft Teams workflow, and the meaning of its answers.

The workflow is "Send webhook alerts to a channel" and begins with "When a Teams webhook
request is received". Teams takes Adaptive Cards up to version 1.5. Ours name the oldest
version with everything they use; an older client shows only `fallbackText`.

Source:
https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using,
"Support for Adaptive Cards" in
https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-reference
and "version" in
https://learn.microsoft.com/adaptive-cards/schema-explorer/adaptive-card.
"""

from __future__ import annotations

import json
from typing import Any

from provisioner.gateways.webhooks.messages import (
    Message,
    Refusal,
    last_fitting,
    shortened,
)

# Teams refuses 28 KB; others have met that at 21 KB, for it counts its own form of it.
MOST_BYTES = 20_000
LONGEST_TITLE, LONGEST_TEXT, LONGEST_FACT, LONGEST_LINE = 200, 3000, 500, 200
MOST_FACTS = 12
LOG_CHARACTERS = 4000
# The first with rich text. Source: https://learn.microsoft.com/adaptive-cards/schema-explorer/text-run
CARD_VERSION = "1.2"

REFUSALS = {
    400: Refusal(
        sentence="The workflow could not read the message, or is turned off in Teams."
    ),
    401: Refusal(sentence="The signature in the address is not right. Copy it again."),
    403: Refusal(sentence="The workflow's owner allows nobody to call it."),
    404: Refusal(
        sentence="The workflow is gone in Teams. Create a new one there and enter its "
        "address.",
        turns_off=True,
    ),
    413: Refusal(sentence="The message is too large for Teams."),
}


def payload(message: Message) -> dict[str, Any]:
    """Return the body to post: a message with one Adaptive Card of at most 20,000
    bytes.
    """
    lines = tuple(shortened(line, LONGEST_LINE) for line in message.lines)
    lines = last_fitting(lines, LOG_CHARACTERS)
    while size_of(found := _with_card(message, lines)) > MOST_BYTES and lines:
        lines = lines[1:]
    return found


def size_of(payload: dict[str, Any]) -> int:
    return len(json.dumps(payload, ensure_ascii=False).encode())


def _with_card(message: Message, lines: tuple[str, ...]) -> dict[str, Any]:
    title = shortened(message.title, LONGEST_TITLE)
    text = shortened(message.text, LONGEST_TEXT)
    body = [
        _runs({"text": title, "size": "large", "weight": "bolder"}),
        _runs({"text": text}),
        *(_fact(*fact) for fact in message.facts[:MOST_FACTS]),
        *(_log_line(line) for line in lines),
    ]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": CARD_VERSION,
        "fallbackText": f"{title}. {text}",
        "body": body,
    }
    if message.links:
        card["actions"] = [
            {"type": "Action.OpenUrl", "title": label, "url": url}
            for label, url in message.links
        ]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _runs(*runs: dict[str, Any], **element: Any) -> dict[str, Any]:
    """Return text runs that are shown literally: a TextBlock would read Markdown."""
    inlines = [{"type": "TextRun", **run} for run in runs]
    return {"type": "RichTextBlock", "inlines": inlines, **element}


def _fact(name: str, value: str) -> dict[str, Any]:
    return _runs(
        {"text": f"{name}: ", "weight": "bolder"},
        {"text": shortened(value, LONGEST_FACT) or " "},
        spacing="small",
    )


def _log_line(line: str) -> dict[str, Any]:
    run = {"text": line or " ", "fontType": "monospace", "size": "small"}
    return _runs(run, spacing="none")
