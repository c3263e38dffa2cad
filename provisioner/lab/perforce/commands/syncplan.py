"""What a sync of one file argument has to do; nothing is done yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.filespec import FileSet
from provisioner.lab.perforce.holdings import (
    Have,
    Opened,
    find_have,
    have_in,
    opened_by,
)
from provisioner.lab.perforce.integrations import Resolve
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import DELETED, Revision, revisions_at


class Step(NamedTuple):
    """What happens to one file. `revision` is the new one, None for a deletion."""

    action: str
    path: str
    client_path: str
    number: int
    revision: Revision | None


class Plan:
    """What a sync of one file argument has to do; nothing is done yet."""

    def __init__(
        self,
        request: Request,
        client: Client,
        wanted: FileSet,
        *,
        moves_no_content: bool,
    ) -> None:
        self._client = client
        self._wanted = wanted
        database = request.state.database
        self.opened: list[Opened] = []
        # Opened files that somebody else changed: a person has to resolve them.
        self.merges: list[Resolve] = []
        self.outside_view = False
        revisions = revisions_at(
            database, wanted, maps_itself=True, without_content=moves_no_content
        )
        # There is something to be up to date with, were it only a deletion.
        self.found = wanted.upper.kind == "none"
        targets = self._targets(revisions)
        haves = {
            have.path: have for have in have_in(database, wanted, client=client.name)
        }
        if not wanted.is_whole_client:
            # A file of the set may be had at a place outside of it.
            for path in targets.keys() - haves.keys():
                have = find_have(database, client=client.name, path=path)
                if have is not None:
                    haves[path] = have
        self.has_any = bool(haves)
        self.scanned = len(revisions) + len(haves)
        busy = opened_by(database, client=client.name)
        self._deleted: list[Step] = []
        self._changed: list[Step] = []
        for path in self._gone(revisions, targets, haves):
            if path in busy:
                self.opened.append(busy[path])
            elif not request.has("p"):
                self._delete(haves[path])
        self._bring(targets, haves, busy, force=request.has("f"))
        # Deletions come first: a directory may take the place of a file.
        self.steps = self._deleted + self._changed

    def _delete(self, have: Have) -> None:
        self._deleted.append(
            Step("deleted", have.path, have.client_path, have.revision, None)
        )

    def _bring(
        self,
        targets: dict[str, tuple[Revision, str]],
        haves: dict[str, Have],
        busy: dict[str, Opened],
        *,
        force: bool,
    ) -> None:
        """Plan what brings each target to the client."""
        append = self._changed.append
        for path, (revision, place) in targets.items():
            have = haves.get(path)
            if have is None or have[1] != place:
                action = "added"
            elif have[2] != revision[1]:
                action = "updated"
            elif force:
                action = "refreshed"
            else:
                continue
            if path in busy:
                if action == "updated":
                    self.opened.append(busy[path])
                    self._take_over(busy[path], revision)
                continue
            if have is not None and action == "added":
                self._delete(have)
            append(Step(action, path, place, revision[1], revision))

    def _take_over(self, opened: Opened, revision: Revision) -> None:
        """Plan to bring a newer revision together with what is being edited."""
        if opened.action in ("edit", "integrate") and (
            revision.revision > opened.revision
        ):
            self.merges.append(
                Resolve(
                    client=opened.client,
                    path=opened.path,
                    other=opened.path,
                    start=opened.revision,
                    end=revision.revision,
                    base=opened.path,
                    base_revision=opened.revision,
                    how="",
                )
            )

    def _targets(self, revisions: list[Revision]) -> dict[str, tuple[Revision, str]]:
        """Return the files the client shall have, each with its place."""
        targets: dict[str, tuple[Revision, str]] = {}
        to_client = self._client.view.to_client
        for revision in revisions:
            path = revision[0]
            place = to_client(path)
            if place is None:
                self.outside_view = True
                continue
            self.found = True
            if revision[3] not in DELETED:
                targets[path] = (revision, place)
        if self._client.view.has_overlays:
            targets = self._without_overlaid(targets)
        return targets

    def _without_overlaid(
        self, targets: dict[str, tuple[Revision, str]]
    ) -> dict[str, tuple[Revision, str]]:
        """Return targets with one file for each place: that of the later line."""
        precedence = self._client.view.precedence
        winners: dict[str, str] = {}
        for path, (_, place) in targets.items():
            rival = winners.get(place)
            if rival is None or precedence(path) > precedence(rival):
                winners[place] = path
        kept = set(winners.values())
        return {path: target for path, target in targets.items() if path in kept}

    def _gone(
        self,
        revisions: list[Revision],
        targets: dict[str, tuple[Revision, str]],
        haves: dict[str, Have],
    ) -> Iterable[str]:
        """Return the files had that the client shall not have any more."""
        if self._wanted.lower is None:
            return [path for path in haves if path not in targets]
        # Of a range only the files that changed in it are looked at.
        return [
            revision.path
            for revision in revisions
            if revision.is_deleted and revision.path in haves
        ]
