"""Paths of tests' own in the lab's depot, and templates of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from provisioner.catalog.actions.templates import template_create
from provisioner.catalog.models import Template
from tests.support.lab import Lab


class Project:
    """A path of the test's own in the depot, and somebody who submits to it."""

    def __init__(self, lab: Lab) -> None:
        self.name = f"p{uuid.uuid4().hex[:8]}"
        self.root = lab.root / self.name
        self.root.mkdir()
        self.p4 = lab.as_admin(client=self.name)
        spec = self.p4.fetch_client(self.name)
        spec["Root"], spec["Host"] = str(self.root), ""
        spec["View"] = [f"//depot/{self.name}/... //{self.name}/..."]
        self.p4.save_client(spec)

    @property
    def view(self) -> str:
        return f"//depot/{self.name}/... //any/..."

    def submit(self, **files: str | None) -> int:
        """Submit these contents, None for a deletion; return the change."""
        return self.submit_paths({f"{name}.txt": text for name, text in files.items()})

    def submit_paths(self, files: dict[str, str | None]) -> int:
        for name, text in files.items():
            path = self.root / name
            if text is None:
                self.p4.run("delete", str(path))
                continue
            is_new = not path.exists()
            if not is_new:
                self.p4.run("edit", str(path))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if is_new:
                self.p4.run("add", str(path))
        return self.submit_opened()

    def submit_opened(self) -> int:
        return int(self.p4.run("submit", "-d", "Test")[-1]["submittedChange"])


@pytest.fixture
def project(lab: Lab) -> Iterator[Project]:
    project = Project(lab)
    yield project
    project.p4.disconnect()


@pytest.fixture
def make_template(
    lab_template: Template, jobs_emptied: None
) -> Callable[..., Template]:
    """Return a function that defines a template of a project's own path."""

    def make(project: Project, **fields: Any) -> Template:
        return template_create(
            by=lab_template.owner,
            site=lab_template.site,
            name=f"t{uuid.uuid4().hex[:8]}",
            view=project.view,
            volume_size_bytes=100 * 2**20,
            **fields,
        )

    return make
