"""What a template's page is made of, whenever it is checked."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.catalog.overviews import find_template_overview
from provisioner.catalog.states import set_template_state
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation


@pytest.mark.parametrize("reads", [1, 2, 3])
def test_a_build_that_ends_meanwhile_has_its_outcome_or_still_runs(
    template: Template, admin: User, reads: int
) -> None:
    build = template_build(by=admin, template=template)
    done = 0

    def end_after_some(execute: Any, *of_query: Any) -> Any:
        nonlocal done
        answer = execute(*of_query)
        done += 1
        if done == reads:
            engine_states.end_operation(build, Operation.State.SUCCEEDED)
            set_template_state(template, Template.State.READY)
        return answer

    with connection.execute_wrapper(end_after_some):
        overview = find_template_overview(admin, pk=template.pk)

    assert overview is not None
    is_running = overview.running is not None
    assert is_running or overview.template.state == Template.State.READY
