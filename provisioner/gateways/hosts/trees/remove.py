"""Emptying a tree: what the lister does beyond walking."""

from __future__ import annotations

from provisioner.gateways.hosts.trees import wire
from provisioner.gateways.hosts.trees.directories import Node
from provisioner.gateways.hosts.trees.walk import Group, Packs, Walk, locate
from provisioner.gateways.hosts.trees.wire import Outcome


class RemovalWalk(Walk):
    """A node is in use until its names are gone; then it is a name of its parent.

    A directory in which something stays is kept, and so is all that leads to it.
    """

    operation = wire.UNLINK

    def sent(self, groups: list[Group]) -> None:
        """Keep the nodes of a batch in use until its outcome is known."""

    def entered(self, parent: Node) -> None:
        """Keep the parent in use until the subdirectory is removed."""

    def left_alone(self, parent: Node) -> None:
        """Keep a directory whose subdirectory stays."""
        parent.is_kept = True
        self.release(parent)

    def unreachable(self, node: Node, names: list[str], *, error: int) -> None:
        """Name what cannot be removed, and keep its directory."""
        node.is_kept = True
        super().unreachable(node, names, error=error)

    def handled(
        self, groups: list[Group], outcome: Outcome, *, operation: int, inode: int
    ) -> None:
        """Release the nodes whose names are gone, and what stays keeps its node."""
        for position, _ in outcome.failed:
            locate(groups, position)[0].is_kept = True
        for node, names in groups:
            self.release(node)
            if operation == wire.RMDIR:
                for _ in names:
                    self.release(node)

    def release(self, node: Node) -> None:
        """Give up one use; a directory nobody uses any more is empty, or kept."""
        with self.change:
            super().release(node)
            while not node.users and node.parent is not None:
                parent = node.parent
                if not node.is_kept:
                    self.push(self._remove, parent, node.name)
                    return
                parent.is_kept = True
                super().release(parent)
                node = parent

    def _remove(self, parent: Node, name: str, packs: Packs) -> None:
        self.add(packs, parent, [name], operation=wire.RMDIR)
