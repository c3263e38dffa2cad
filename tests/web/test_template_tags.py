from __future__ import annotations

import pytest
from django.db.models import TextChoices

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation, Step
from provisioner.engine.overviews import StepLine
from provisioner.web.templatetags.cloneyard import STATE_ICONS, count
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


def test_count_knows_one() -> None:
    assert count(1, "file", "files") == "1 file"
    assert count(0, "file", "files") == "0 files"
    assert count(361204, "file", "files") == "361,204 files"


@pytest.mark.parametrize(
    "states", [Workspace.State, Template.State, Operation.State, Step.State]
)
def test_every_state_has_an_icon(states: type[TextChoices]) -> None:
    assert set(states.values) <= set(STATE_ICONS)
