"""Requests to the lab's ONTAP over plain HTTPS."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from provisioner.lab.ontap.server import OntapConfig, OntapLab, Settings

SECONDS = 60


@dataclass
class Rest:
    """Requests to one lab."""

    lab: OntapLab
    session: requests.Session

    def __call__(
        self, method: str, path: str, body: Any = None, **query: Any
    ) -> requests.Response:
        return self.session.request(
            method, self.url(path), json=body, params=query, timeout=SECONDS
        )

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.lab.port}{path}"

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        response = self("GET", path, **query)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def done(
        self, method: str, path: str, body: Any = None, **query: Any
    ) -> dict[str, Any]:
        """Send a write, wait for its job and return the job."""
        response = self(method, path, body, **query)
        assert response.status_code in (200, 201, 202), response.text
        return self.job(response.json()["job"]["uuid"])

    def job(self, uuid: str) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            job = self.get(f"/api/cluster/jobs/{uuid}")
            if job["state"] not in ("queued", "running"):
                return job
            time.sleep(0.01)
        raise AssertionError(f"job {uuid} has no end")

    def volume(self, name: str, **fields: Any) -> str:
        """Make a thin volume and return its uuid."""
        body = {
            "name": name,
            "svm": {"name": "svm_dev"},
            "aggregates": [{"name": "aggr1"}],
            "guarantee": {"type": "none"},
            **fields,
        }
        return self._made(body)

    def clone(self, name: str, parent: str, **fields: Any) -> str:
        """Make a FlexClone and return its uuid."""
        clone = {"is_flexclone": True, "parent_volume": {"name": parent}}
        clone |= fields.pop("clone", {})
        return self._made(
            {"name": name, "svm": {"name": "svm_dev"}, "clone": clone, **fields}
        )

    def _made(self, body: dict[str, Any]) -> str:
        job = self.done("POST", "/api/storage/volumes", body)
        assert job["state"] == "success", job
        found = self.get("/api/storage/volumes", name=body["name"])["records"]
        uuid: str = found[0]["uuid"]
        return uuid

    def snapshot(self, volume: str, name: str) -> str:
        path = f"/api/storage/volumes/{volume}/snapshots"
        assert self.done("POST", path, {"name": name})["state"] == "success"
        uuid: str = self.get(path, name=name)["records"][0]["uuid"]
        return uuid

    def code(self, response: requests.Response) -> str:
        code: str = response.json()["error"]["code"]
        return code

    def set(self, **settings: Any) -> None:
        assert self("PATCH", "/lab/settings", settings).ok


def rest_to(lab: OntapLab) -> Rest:
    session = requests.Session()
    session.trust_env = False
    session.auth = ("admin", "secret")
    session.verify = str(lab.ca_file)
    return Rest(lab, session)


def start_lab(root: Path, **settings: Any) -> OntapLab:
    config = OntapConfig(root, password="secret", settings=Settings(**settings))
    return OntapLab(config).start()


def empty(rest: Rest) -> None:
    """Remove every volume but the root, those inside others and clones first."""
    for _ in range(10):
        found = rest.get("/api/storage/volumes", fields="nas.path,is_svm_root")
        volumes = [row for row in found["records"] if not row["is_svm_root"]]
        if not volumes:
            return
        for row in sorted(volumes, key=lambda v: v.get("nas", {}).get("path", "")):
            rest.done("DELETE", f"/api/storage/volumes/{row['uuid']}", force="true")
    raise AssertionError("volumes cannot be removed")
