"""The garbage collector in processes that serve for long."""

from __future__ import annotations

import gc

LOOK_AFTER_OBJECTS = 10_000
"""After how many new objects the youngest are looked through; 700 is Python's."""


def spare_what_is_loaded() -> None:
    """Have the collector look at what is made from now on alone, and less often.

    What is loaded by now stays to the end. Looked through, the 130 thousand objects of
    the web server halt all its threads for as long as a page takes; and forks share
    the memory in which nobody counts.

    Source: https://docs.python.org/3.11/library/gc.html#gc.freeze
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(LOOK_AFTER_OBJECTS, *gc.get_threshold()[1:])
