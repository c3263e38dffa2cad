"""The lab's own routes, driven by schemathesis from the lab's own description.

Whatever is sent, nothing is a 5xx, nothing hangs, and every refusal is ONTAP's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from provisioner.lab.ontap.app import ROUTES
from provisioner.lab.ontap.description import openapi
from provisioner.lab.ontap.errors import ERRORS
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to

SECONDS = 20

# Faults and settings would decide about the requests that follow.
schema = schemathesis.openapi.from_dict(openapi(ROUTES)).exclude(
    path_regex="^/lab/(faults|settings)$", method=["PUT", "PATCH"]
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    """A lab with something of each kind in it."""
    root = tmp_path_factory.mktemp("schema")
    config = OntapConfig(root, password="secret", more_svms=("svm_dr",))
    with OntapLab(config) as lab:
        rest = rest_to(lab)
        template = rest.volume("t", nas={"path": "/t"})
        rest.snapshot(template, "s")
        rest.clone("c", "t", nas={"path": "/c"})
        rest.volume("d", svm={"name": "svm_dr"}, type="dp")
        ends = {"source.path": "svm_dev:t", "destination.path": "svm_dr:d"}
        rest.done("POST", "/api/snapmirror/relationships", ends)
        yield rest
        rest.session.close()


def aim(case: schemathesis.Case[Any], rest: Rest) -> None:
    """Let a path that reads or changes one thing lead to one that is there."""
    parameters: dict[str, Any] = case.path_parameters or {}
    path = ""
    for part in case.operation.path.split("/")[1:]:
        name = part.strip("{}")
        if part.startswith("{") and case.method != "DELETE":
            records = rest.session.get(rest.url(path), timeout=SECONDS).json()
            (link, *_) = [
                record["_links"]["self"]["href"] for record in records["records"]
            ] or ["/none"]
            parameters[name] = link.rpartition("/")[2]
        path += f"/{parameters.get(name, part)}"


def is_aimed(case: schemathesis.Case[Any]) -> bool:
    """Return whether this one of the generated cases is aimed: every second, or so."""
    return len(repr((case.query, case.body))) % 2 == 0


@schema.parametrize()
@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # Phase.explicit adds some 6,000 cases, a minute's worth
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_of_ontap(
    case: schemathesis.Case[Any], filled: Rest
) -> None:
    if is_aimed(case):
        aim(case, filled)
    response = case.call(
        base_url=filled.url(""),
        session=filled.session,
        timeout=SECONDS,
        verify=filled.session.verify,
    )
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        error = response.json()["error"]
        assert error["code"] in ERRORS, error
        assert error["message"]
    else:
        assert isinstance(response.json(), dict)


def test_the_description_is_served_and_has_every_route(filled: Rest) -> None:
    said = filled.get("/lab/openapi")
    assert said == openapi(ROUTES)
    described = {
        (method.upper(), path)
        for path, operations in said["paths"].items()
        for method in operations
    }
    assert len(described) == len(ROUTES)
    create = said["paths"]["/api/storage/volumes"]["post"]
    fields = create["requestBody"]["content"]["application/json"]["schema"]
    assert fields["properties"]["clone.is_flexclone"] == {"type": "boolean"}
    assert all(
        operation["summary"] for operation in said["paths"]["/api/cluster"].values()
    )
