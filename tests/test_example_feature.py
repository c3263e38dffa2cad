"""A feature is one folder, a line in the settings and a line in the addresses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.collection import ROOT


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_feature_is_added_in_one_folder() -> None:
    """Its own tests pass in an installation that has it."""
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q"),
            *("-p", "no:cacheprovider", "tests/example_feature"),
        ],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.example_feature.settings"},
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stdout
