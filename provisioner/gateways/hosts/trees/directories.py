"""The directories of a walk, and their descriptors."""

from __future__ import annotations

import errno
import os
import threading

from provisioner.gateways.hosts.trees.root import OPEN_DIRECTORY, mount_id_of


class Node:
    """A directory of the tree; `users` counts who still needs its descriptor."""

    __slots__ = ("fd", "inode", "is_kept", "name", "parent", "users")

    def __init__(self, parent: Node | None, name: str) -> None:
        self.parent = parent
        self.name = name
        self.fd = -1
        self.inode = 0
        self.users = 0
        self.is_kept = False

    def path(self, name: str = ".") -> str:
        """Return the path of one of its names, from the root; "." is the root."""
        parts = [] if name == "." else [name]
        node = self
        while node.parent is not None:
            parts.append(node.name)
            node = node.parent
        return "/".join(reversed(parts)) or "."


class Directories:
    """Opens directories below one root, each from its parent, on one filesystem.

    `change` is the lock under which nodes change. Where more than `most_open` are open,
    those that only wait for their subdirectories are closed, and opened again when it
    is their turn.
    """

    def __init__(self, root_fd: int, *, mount_id: int | None, most_open: int) -> None:
        found = os.fstat(root_fd)
        self.root = Node(None, "")
        self.root.fd, self.root.inode = os.dup(root_fd), found.st_ino
        self.root.users = 2  # one for its listing, one so that it stays open
        self.change = threading.RLock()
        self._device = found.st_dev
        self._mount_id = mount_id
        self.most_open = most_open
        self._open = 1

    def open(self, node: Node) -> bool:
        """Open a node from its parent; say whether it is ours: the same filesystem.

        Raises: OSError.
        """
        assert node.parent is not None
        parent_fd, is_borrowed = self.borrow(node.parent)
        try:
            fd = os.open(node.name, OPEN_DIRECTORY, dir_fd=parent_fd)
        finally:
            if is_borrowed:
                os.close(parent_fd)
        if not self._is_ours(fd):
            os.close(fd)
            return False
        node.fd, node.inode, node.users = fd, os.fstat(fd).st_ino, 1
        with self.change:
            self._open += 1
        return True

    def _is_ours(self, fd: int) -> bool:
        # The path of a mount point may change while we walk; its mount does not.
        return os.fstat(fd).st_dev == self._device and (
            self._mount_id is None or mount_id_of(fd) == self._mount_id
        )

    def needed_below(self, node: Node, *, subdirectories: int) -> None:
        """Keep a node for subdirectories that are still to be opened from it."""
        with self.change:
            node.users += subdirectories
            if self._open > self.most_open:
                self._close(node)

    def release(self, node: Node) -> None:
        """Give up one use of a node; after the last its descriptor is closed."""
        with self.change:
            node.users -= 1
            if not node.users:
                self._close(node)

    def _close(self, node: Node) -> None:
        if node.fd >= 0:
            os.close(node.fd)
            node.fd = -1
            self._open -= 1

    def borrow(self, node: Node) -> tuple[int, bool]:
        """Return a descriptor of a node, and whether the caller has to close it.

        A node that had to be closed is opened again, name by name from the nearest
        ancestor that is open; what is there now has to be the same directory.

        Raises: OSError.
        """
        with self.change:
            if node.fd >= 0:
                return node.fd, False
            missing, ancestor = [node], node.parent
            while ancestor is not None and ancestor.fd < 0:
                missing.append(ancestor)
                ancestor = ancestor.parent
            assert ancestor is not None, "the root stays open"
            fd = os.dup(ancestor.fd)
        for step in reversed(missing):
            try:
                below = os.open(step.name, OPEN_DIRECTORY, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        if not self._is_ours(fd) or os.fstat(fd).st_ino != node.inode:
            os.close(fd)
            raise FileNotFoundError(errno.ENOENT, "another directory took its name")
        return fd, True
