from __future__ import annotations

import pytest
from django.db.models import TextChoices

from provisioner.catalog.models import Template
from provisioner.engine.logs.excerpt import Excerpt
from provisioner.engine.models import Operation, Step
from provisioner.engine.overviews import StepLine
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.web.templatetags.cloneyard import STATE_ICONS, count, said
from provisioner.workspaces.models import Workspace


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (
            {"done": 1200, "total": 3612, "unit": "files", "text": "90 a second"},
            "1,200 of 3,612 files, 90 a second",
        ),
        ({"done": 1200, "unit": "entries"}, "1,200 entries"),
        ({"text": "flushing"}, "flushing"),
        ({}, ""),
    ],
)
def test_measure_says_what_is_known(progress: dict[str, object], text: str) -> None:
    step = Step(state=Step.State.RUNNING, progress=progress)
    assert StepLine(step=step, title="x", operation=Operation()).measure == text


def test_what_a_message_quotes_of_a_log_is_code() -> None:
    excerpt = Excerpt(lines=("cc <a.c>", "a.c:1: error"), line_number=7)

    assert said(f"It failed.\n{excerpt}") == (
        '<p class="prose-lines">It failed.\nFirst error, line 7 of the log:</p>'
        '<pre class="quoted">cc &lt;a.c&gt;\na.c:1: error</pre>'
    )
    assert said("It <failed>.") == '<p class="prose-lines">It &lt;failed&gt;.</p>'


def test_count_knows_one() -> None:
    assert count(1, "file", "files") == "1 file"
    assert count(0, "file", "files") == "0 files"
    assert count(361204, "file", "files") == "361,204 files"


@pytest.mark.parametrize(
    "states",
    [
        *(Workspace.State, Template.State, Operation.State, Step.State),
        *(Mirror.State, MirroredSnapshot.State),
    ],
)
def test_every_state_has_an_icon(states: type[TextChoices]) -> None:
    assert set(states.values) <= set(STATE_ICONS)
