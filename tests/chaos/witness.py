"""What is really there, asked from the servers without the product in between."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar

from P4 import P4, P4Exception

from provisioner.demo import depot
from tests.chaos.patience import insist

Answer = TypeVar("Answer")

TIMEOUT_SECONDS = 30
VOLUME_FIELDS = (
    "name,uuid,comment,type,state,nas.path,nas.export_policy.name,clone,aggregates,"
    "movement"
)


class OntapWitness:
    """ONTAP by plain HTTPS."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said
        pair = f"{said['user']}:{said['password']}".encode()
        self._authorization = f"Basic {base64.b64encode(pair).decode()}"
        self._context = ssl.create_default_context(cafile=said["ca_file"])

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Raises: OSError."""
        request = urllib.request.Request(
            f"https://{self.said['host']}:{self.said['port']}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": self._authorization,
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(  # noqa: S310 - https, to the lab
            request, timeout=TIMEOUT_SECONDS, context=self._context
        ) as answer:
            return json.loads(answer.read() or b"{}")

    def _records(self, path: str) -> list[dict[str, Any]]:
        def ask() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            following = path
            while following:
                page = self.request("GET", following)
                found += page["records"]
                following = page.get("_links", {}).get("next", {}).get("href", "")
            return found

        return insist(ask, on=(OSError, HTTPException, ValueError))

    def volumes(self, *, tag: str) -> list[dict[str, Any]]:
        """Return volumes whose comment begins with a tag."""
        return self._records(
            f"/api/storage/volumes?comment={tag}*&fields={VOLUME_FIELDS}"
        )

    def all_volumes(self) -> list[dict[str, Any]]:
        return self._records(f"/api/storage/volumes?fields={VOLUME_FIELDS}")

    def snapshots(self, volume_uuid: str) -> set[str]:
        path = f"/api/storage/volumes/{volume_uuid}/snapshots?fields=name"
        return {record["name"] for record in self._records(path)}

    def versions(self, volume_uuid: str) -> dict[str, dict[str, Any]]:
        """Return the records of a volume's snapshots, by name."""
        fields = "name,uuid,version_uuid"
        path = f"/api/storage/volumes/{volume_uuid}/snapshots?fields={fields}"
        return {record["name"]: record for record in self._records(path)}

    def relationships(self) -> list[dict[str, Any]]:
        """Return the SnapMirror relationships that this cluster fills."""
        path = "/api/snapmirror/relationships"
        return self._records(f"{path}?fields=uuid,destination.path")

    def destinations(self) -> list[dict[str, Any]]:
        """Return the relationships that this cluster knows as their source."""
        path = "/api/snapmirror/relationships?list_destinations_only=true"
        return self._records(f"{path}&fields=uuid,destination.path")

    def files_of(self, snapshot_uuid: str) -> dict[str, bytes]:
        """Return the contents of a snapshot's files, as the lab keeps them."""
        root = Path(self.said["root"]) / "data" / "snapshots" / snapshot_uuid
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def tree_of(self, volume_uuid: str) -> Path:
        """Return where the lab keeps a volume's files, mounted or not."""
        return Path(self.said["root"]) / "data" / "volumes" / volume_uuid


class Perforce:
    """A person's own connection; made again when it is cut."""

    def __init__(
        self, said: dict[str, Any], *, user: str, password: str, scratch: Path
    ) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._account = depot.DepotAccount(
            port=said["port"], user=user, password=password
        )
        self._scratch = scratch
        self._p4: P4 | None = None
        self._lock = threading.RLock()

    def insist(self, use: Callable[[P4], Answer], *, client: str = "") -> Answer:
        """Return what comes of using the connection, trying again after failures.

        Raises: P4Exception where it fails for long.
        """

        def once() -> Answer:
            if self._p4 is None:
                self._p4 = depot.connect(
                    self._account, client=client or "nobody", scratch=self._scratch
                )
            self._p4.client = client or "nobody"
            return use(self._p4)

        with self._lock:
            return insist(once, on=(P4Exception,), between=self.close)

    def close(self) -> None:
        p4, self._p4 = self._p4, None
        if p4 is not None and p4.connected():
            p4.disconnect()
