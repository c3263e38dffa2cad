"""What can be measured: each profile with its parameters, phases and figures.

Profiles are data. What a source does not say of one is ours, and said so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BENCHMARKS = "tools/benchmarks at ftp.perforce.com"
TALK = "“3 Ways to Improve Performance from a Storage Perspective”, Gupta and Brazil"


class Unit(StrEnum):
    SECONDS = "s"
    FILES_A_SECOND = "files/s"
    COMMANDS_A_SECOND = "commands/s"
    MIB_A_SECOND = "MiB/s"
    MIB = "MiB"
    NUMBER = ""


class Target(StrEnum):
    """What a profile is measured at."""

    SERVER = "a sandbox, or a server marked as scratch"
    SANDBOX = "a sandbox"
    TEMPLATE = "a template"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a profile. `is_compared`: two runs are compared by it."""

    code: str
    title: str
    unit: Unit
    more_is_better: bool = False
    is_compared: bool = True


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What is done, how often, and what is told of it.

    `usual` has the parameters that count for it, with the values of its source where
    that names them.
    """

    code: str
    title: str
    about: str
    source: str
    phases: tuple[str, ...]
    usual: dict[str, int]
    figures: tuple[Figure, ...]
    target: Target = Target.SERVER

    def figure(self, code: str) -> Figure | None:
        return next((each for each in self.figures if each.code == code), None)


ELAPSED = Figure(code="elapsed", title="Elapsed", unit=Unit.SECONDS)
_FILES = Figure(code="files", title="Files", unit=Unit.NUMBER, is_compared=False)
_RATE = Figure(code="rate", title="Rate", unit=Unit.MIB_A_SECOND, more_is_better=True)
_COMMIT = (
    Figure(code="integrate", title="Integrate", unit=Unit.SECONDS),
    Figure(code="compute", title="Compute phase", unit=Unit.SECONDS),
    Figure(code="elapsed", title="Elapsed, submit", unit=Unit.SECONDS),
    Figure(code="exiting", title="Exiting time", unit=Unit.SECONDS),
    Figure(code="commit", title="Commit duration", unit=Unit.SECONDS),
    Figure(
        code="commit_rate",
        title="Commit rate",
        unit=Unit.FILES_A_SECOND,
        more_is_better=True,
    ),
    _FILES,
)


def _rate(command: str) -> Figure:
    return Figure(
        code=f"max_{command}",
        title=f"Maximum {command}/second",
        unit=Unit.COMMANDS_A_SECOND,
        more_is_better=True,
    )


BROWSED = ("dirs", "files", "fstat", "filelog")

# Steps that make a workspace, by their names, and all of it.
PHASES = {
    "clone": "Clone",
    "export": "Export",
    "mount": "Mount",
    "owner": "Re-own or chown",
    "client": "Client",
    "flush": "Flush",
    "p4config": ".p4config",
    "reconcile": "Reconcile",
    "ready": "Ready",
}
READY = "ready"
# Workspaces that are requested at once, one number after the other.
LEVELS = (1, 10, 50)


def level_figure(phase: str, at_once: int) -> str:
    """Return the code of the figure of a phase."""
    return f"{phase}_{at_once}"


PROFILES = (
    Profile(
        code="browse",
        title="Browse",
        about="Children drill down random paths, without a pause, as users of P4V do.",
        source=f"{BENCHMARKS}/browse: 64 children over 2 hosts, 65,536 browses, one "
        "child a second on each host. What is asked at which level is ours.",
        phases=("browse", "analysis of the log"),
        usual={
            **{"files": 70_000, "children": 32, "hosts": 1, "rounds": 1024},
            **{"stagger_ms": 1000, "repeats": 3},
        },
        figures=(
            ELAPSED,
            *map(_rate, BROWSED),
            Figure(
                code="concurrent",
                title="Children at the same second",
                unit=Unit.NUMBER,
                is_compared=False,
            ),
            Figure(
                code="browses",
                title="Browses",
                unit=Unit.NUMBER,
                is_compared=False,
            ),
            Figure(
                code="unique",
                title="Unique file paths",
                unit=Unit.NUMBER,
                is_compared=False,
            ),
        ),
    ),
    Profile(
        code="branchsubmit",
        title="Branch and submit",
        about="A tree is branched by integrate -v and submitted as one change.",
        source=f"{BENCHMARKS}/branchsubmit and {TALK}: integrate -v, change, submit; "
        "compute phase, elapsed time, exiting time, commit rate. They do not say how "
        "each is computed. See the documentation for how it is here.",
        phases=("integrate -v", "submit", "commit"),
        usual={"files": 70_000, "repeats": 5},
        figures=_COMMIT,
    ),
    Profile(
        code="branchsubmit-edit",
        title="Branch, edit and submit",
        about="As before, but the files come to the client and are sent back.",
        source=f"{TALK}: integrate, edit, submit.",
        phases=("integrate", "edit", "submit", "commit"),
        usual={"files": 70_000, "repeats": 5},
        figures=(
            _COMMIT[0],
            Figure(code="edit", title="Edit", unit=Unit.SECONDS),
            *_COMMIT[1:],
        ),
    ),
    Profile(
        code="sync",
        title="Sync",
        about="Each child syncs all files into an empty client of its own.",
        source=f"{TALK} names it. Number of children and sizes are ours.",
        phases=("sync",),
        usual={
            **{"files": 7_000, "size": 16_384, "children": 8, "hosts": 1},
            "repeats": 3,
        },
        figures=(
            ELAPSED,
            _RATE,
            Figure(code="mib", title="Transferred", unit=Unit.MIB, is_compared=False),
            _FILES,
        ),
    ),
    Profile(
        code="build-load",
        title="Build load",
        about="Fifty clients sync everything at the same moment, as the build hosts of "
        "a large project do.",
        source="Builds of TiVo with IC Manage, at a Perforce User Conference: fifty "
        "clients at once, average of five. What they sync is ours.",
        phases=("sync of all clients",),
        usual={"files": 7_000, "children": 50, "hosts": 1, "repeats": 5},
        figures=(
            Figure(
                code="client_average",
                title="Sync of a client, average",
                unit=Unit.SECONDS,
            ),
            Figure(
                code="client_longest",
                title="Sync of a client, longest",
                unit=Unit.SECONDS,
            ),
            ELAPSED,
            _RATE,
            _FILES,
        ),
    ),
    Profile(
        code="rim",
        title="Six phases of RIM",
        about="Files are locked, a client is populated, a branch is integrated and "
        "submitted, and the database is checkpointed and rebuilt, one after the other.",
        source="Research In Motion, Perforce User Conference 2008, names the six. We "
        "had no copy that says how it measured each, so that is ours.",
        phases=(
            *("lock", "populate", "integrate", "submit-integrate"),
            *("checkpoint", "rebuild"),
        ),
        usual={"files": 70_000, "repeats": 5},
        figures=(
            Figure(code="lock", title="Lock", unit=Unit.SECONDS),
            Figure(code="populate", title="Populate", unit=Unit.SECONDS),
            Figure(code="integrate", title="Integrate", unit=Unit.SECONDS),
            Figure(code="submit", title="Submit-integrate", unit=Unit.SECONDS),
            Figure(code="checkpoint", title="Checkpoint", unit=Unit.SECONDS),
            Figure(code="rebuild", title="Rebuild", unit=Unit.SECONDS),
            _FILES,
        ),
        target=Target.SANDBOX,
    ),
    Profile(
        code="deltas",
        title="Deltas",
        about="Ten previews of integrations and twelve of syncs: only reads.",
        source=f"{TALK} names it. Which trees are previewed is ours.",
        phases=("10 integrate -n", "12 sync -n"),
        usual={"files": 70_000, "repeats": 5},
        figures=(
            Figure(code="integrate_n", title="10 integrate -n", unit=Unit.SECONDS),
            Figure(code="sync_n", title="12 sync -n", unit=Unit.SECONDS),
        ),
    ),
    Profile(
        code="workspaces",
        title="Workspaces",
        about="Workspaces of a template are requested 1, 10 and 50 at once, and "
        "removed again. Each is compared with the depot by reconcile.",
        source="Ours: what Cloneyard itself does, phase by phase.",
        phases=tuple(PHASES.values()),
        usual={"children": 50, "repeats": 3},
        figures=tuple(
            Figure(
                code=level_figure(phase, at_once),
                title=f"{title}, {at_once} at once",
                unit=Unit.SECONDS,
            )
            for at_once in LEVELS
            for phase, title in PHASES.items()
        ),
        target=Target.TEMPLATE,
    ),
)

BY_CODE = {profile.code: profile for profile in PROFILES}
CHOICES = [(profile.code, profile.title) for profile in PROFILES]
BRANCHING = ("branchsubmit", "branchsubmit-edit")
INTEGRATES, SYNCS = 10, 12
