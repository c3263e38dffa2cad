"""Giving a tree to an owner: what the lister does beyond walking."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any

from provisioner.gateways.hosts.trees import wire
from provisioner.gateways.hosts.trees.directories import Directories, Node
from provisioner.gateways.hosts.trees.walk import Group, Packs, Walk, locate
from provisioner.gateways.hosts.trees.wire import Outcome


class OwnershipWalk(Walk):
    """Each directory is handled as "." of itself: the very inode that was opened.

    A file with several names is given away when all of them were met below the root;
    one that is also elsewhere is left alone, because elsewhere would change too.
    """

    operation = wire.CHANGE_OWNER

    def __init__(self, directories: Directories, **arguments: Any) -> None:
        super().__init__(directories, **arguments)
        self._linked: dict[int, list[tuple[Node, str]]] = {}

    def listed(self, node: Node, *, is_root: bool) -> list[str]:
        """Begin with the directory itself; the root was done before the walk."""
        return [] if is_root else ["."]

    def handled(
        self, groups: list[Group], outcome: Outcome, *, operation: int, inode: int
    ) -> None:
        """Collect the names of linked files; settle those that are all known."""
        if inode:
            self._settle(inode, outcome)
            return
        for position, linked_inode, count in outcome.linked:
            names = self._linked.setdefault(linked_inode, [])
            node, name = locate(groups, position)
            if any(n == name and d.inode == node.inode for d, n in names):
                continue  # Its directory was moved, and read once more.
            names.append((node, name))
            if len(names) == count:
                self.push(partial(self._send_linked, linked_inode), *names[0])

    def _send_linked(self, inode: int, node: Node, name: str, packs: Packs) -> None:
        self.send_linked(node, name, inode=inode, links=len(self._linked[inode]))

    def _settle(self, inode: int, outcome: Outcome) -> None:
        """Count the other names of a linked file like the one that was sent."""
        if outcome.linked:
            return  # It got one more name meanwhile: `ended` reports them all.
        names = self._linked.pop(inode)[1:]
        with self.change:
            self.tally.done += len(names) * bool(outcome.done)
            self.tally.already += len(names) * bool(outcome.already)
            self.tally.vanished += len(names) * bool(outcome.vanished)
            self.tally.entries += len(names) * (outcome.done + outcome.already)
        for _, error in outcome.failed:
            for node, name in names:
                self.fail(node.path(name), error=error)

    def ended(self) -> None:
        """Name the files that have names elsewhere."""
        for names in self._linked.values():
            for node, name in names:
                self.fail(node.path(name), error=errno.EMLINK)
