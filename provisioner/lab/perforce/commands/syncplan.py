"""What a sync of one file argument has to do; nothing is done yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
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


# `Step._make` without its check.
MAKE_STEP = partial(tuple.__new__, Step)


class Plan:
    """What a sync of one file argument has to do; nothing is done yet."""

    def __init__(
        self,
        request: Request,
        client: Client,
        wanted: FileSet,
    ) -> None:
        self._client = client
        self._wanted = wanted
        database = request.state.database
        self.opened: list[Opened] = []
        # Opened files that somebody else changed: a person has to resolve them.
        self.merges: list[Resolve] = []
        # What the client has already, where it is only to be populated (-p).
        self.bypassed: list[Have] = []
        self.outside_view = False
        revisions = revisions_at(database, wanted, maps_itself=True)
        # There is something to be up to date with, were it only a deletion.
        self.found = wanted.upper.kind == "none"
        haves = {
            have.path: have for have in have_in(database, wanted, client=client.name)
        }
        self.has_any = bool(haves)
        self.scanned = len(revisions) + len(haves)
        self._busy = opened_by(database, client=client.name)
        self._deleted: list[Step] = []
        self._changed: list[Step] = []
        self._bring(request, self._targets(revisions), haves)
        for have in self._gone(revisions, haves):
            if have.path in self._busy:
                self.opened.append(self._busy[have.path])
            elif not request.has("p"):
                self._delete(have)
        # Deletions come first: a directory may take the place of a file.
        steps = self._deleted + self._changed
        limit = request.number("m", default=0)
        self.steps = steps[:limit] if limit else steps

    @property
    def count(self) -> int:
        return len(self.steps)

    def _delete(self, have: Have) -> None:
        self._deleted.append(
            Step("deleted", have.path, have.client_path, have.revision, None)
        )

    def _bring(
        self,
        request: Request,
        targets: Iterable[tuple[Revision, str]],
        haves: dict[str, Have],
    ) -> None:
        """Plan what brings each target to the client, removing it from what is had.

        This and what it calls runs once for each file of the client.
        """
        force, populates = request.has("f"), request.has("p")
        is_whole = self._wanted.is_whole_client
        busy = self._busy
        append = self._changed.append
        for revision, place in targets:
            path, number = revision[0], revision[1]
            have = haves.pop(path, None)
            if have is None and not is_whole:
                # A file of the set may be had at a place outside of it.
                have = find_have(
                    request.state.database, client=self._client.name, path=path
                )
                self.has_any = self.has_any or have is not None
            if have is not None and populates:
                self.bypassed.append(have)
                continue
            if have is None or have[1] != place:
                action = "added"
            elif have[2] != number:
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
            append(MAKE_STEP((action, path, place, number, revision)))

    def _take_over(self, opened: Opened, revision: Revision) -> None:
        """Plan to resolve a newer revision with an opened file."""
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

    def _targets(self, revisions: list[Revision]) -> Iterable[tuple[Revision, str]]:
        """Return the files that the client is to have, each with its client path."""
        mapped = self._mapped(revisions)
        if self._client.view.has_overlays:
            mapped = iter(self._without_overlaid(mapped))
        return (target for target in mapped if target[0][3] not in DELETED)

    def _mapped(self, revisions: list[Revision]) -> Iterator[tuple[Revision, str]]:
        to_client = self._client.view.to_client
        for revision in revisions:
            place = to_client(revision[0])
            if place is None:
                self.outside_view = True
                continue
            self.found = True
            yield revision, place

    def _without_overlaid(
        self, targets: Iterable[tuple[Revision, str]]
    ) -> list[tuple[Revision, str]]:
        """Return targets with one file per client path: that of the later line.

        A deleted one hides the others as well.

        Source: git's tests of git-p4 ("overlay collision", t9809), which were written
        with a server.
        """
        precedence = self._client.view.precedence
        winners: dict[str, Revision] = {}
        for revision, place in targets:
            rival = winners.get(place)
            if rival is None or precedence(revision.path) > precedence(rival.path):
                winners[place] = revision
        return [(revision, place) for place, revision in winners.items()]

    def _gone(
        self, revisions: list[Revision], haves: dict[str, Have]
    ) -> Iterable[Have]:
        """Return the files had that are no targets and have to be removed."""
        if self._wanted.lower is None:
            return haves.values()
        # Of a range only the files that changed in it are looked at.
        return [
            haves[revision.path]
            for revision in revisions
            if revision.is_deleted and revision.path in haves
        ]
