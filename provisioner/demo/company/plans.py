"""The studio's templates, before anything happened to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Tool = Literal["unreal", "make", "msvc", "maven", "python"]
Policy = Literal["on_change", "nightly", "manual"]
Standing = Literal["ready", "failed", "building", "new"]

BUILD_SCRIPT = "Build/build.sh"
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One template. `files` and `gib` are those of its tree, `minutes` of an
    incremental build, `share` is its share of all use.
    """

    name: str
    description: str
    depot: str
    tool: Tool
    files: int
    gib: int
    minutes: float
    share: float
    policy: Policy = "nightly"
    has_test: bool = True
    wants_tested: bool = False
    standing: Standing = "ready"
    is_abroad: bool = False

    @property
    def depot_path(self) -> str:
        return f"//depot/{self.depot}"

    @property
    def view(self) -> str:
        return f"{self.depot_path}/... //template/..."

    @property
    def build_command(self) -> str:
        return f"sh {BUILD_SCRIPT} {_BUILDS[self.tool]}"

    @property
    def test_command(self) -> str:
        return f"sh {BUILD_SCRIPT} {_TESTS[self.tool]}" if self.has_test else ""

    @property
    def ignore_patterns(self) -> str:
        return _IGNORED[self.tool]


_BUILDS: dict[Tool, str] = {
    "unreal": "-target=Editor -platform=Linux -config=Development",
    "make": "-j64 all",
    "msvc": "/m /p:Configuration=Development /p:Platform=x64",
    "maven": "-T 16 package -DskipTests",
    "python": "wheel",
}
_TESTS: dict[Tool, str] = {
    "unreal": "-test=Smoke -nullrhi",
    "make": "check",
    "msvc": "/t:RunTests",
    "maven": "verify",
    "python": "pytest -q",
}
_IGNORED: dict[Tool, str] = {
    "unreal": "Binaries/...\nIntermediate/...\nDerivedDataCache/...\n",
    "make": "*.o\n*.a\nout/...\n",
    "msvc": "*.obj\n*.pdb\nx64/...\n",
    "maven": "target/...\n*.class\n",
    "python": "__pycache__/...\n*.pyc\nbuild/...\n",
}

_AURORA = "The open-world game, on Unreal:"
_HELIOS = "The studio's own engine:"
PLANS = (
    Plan(
        name="aurora-main",
        description=f"{_AURORA} main line, editor and game, built for Linux.",
        depot="aurora/main",
        tool="unreal",
        files=21_400,
        gib=412,
        minutes=38,
        share=22,
        policy="on_change",
        wants_tested=True,
    ),
    Plan(
        name="aurora-release-1-4",
        description=f"{_AURORA} the release that is out.",
        depot="aurora/rel-1.4",
        tool="unreal",
        files=20_900,
        gib=405,
        minutes=36,
        share=8,
    ),
    Plan(
        name="aurora-editor",
        description=f"{_AURORA} the editor alone, with its plug-ins.",
        depot="aurora/editor",
        tool="unreal",
        files=9_200,
        gib=164,
        minutes=22,
        share=9,
        policy="on_change",
    ),
    Plan(
        name="aurora-server",
        description=f"{_AURORA} the dedicated server.",
        depot="aurora/server",
        tool="unreal",
        files=5_100,
        gib=58,
        minutes=14,
        share=5,
        policy="on_change",
        standing="failed",
    ),
    Plan(
        name="aurora-console",
        description=f"{_AURORA} consoles. Needs the rights to their SDKs.",
        depot="aurora/console",
        tool="msvc",
        files=8_300,
        gib=298,
        minutes=52,
        share=4,
        has_test=False,
    ),
    Plan(
        name="aurora-demo",
        description=f"{_AURORA} what goes to the trade fair.",
        depot="aurora/demo",
        tool="unreal",
        files=4_400,
        gib=71,
        minutes=17,
        share=2,
        policy="manual",
    ),
    Plan(
        name="helios-engine",
        description=f"{_HELIOS} runtime and libraries.",
        depot="helios/main",
        tool="make",
        files=6_700,
        gib=46,
        minutes=19,
        share=10,
        policy="on_change",
        wants_tested=True,
    ),
    Plan(
        name="helios-next",
        description=f"{_HELIOS} the renderer that is to come.",
        depot="helios/next",
        tool="make",
        files=6_900,
        gib=49,
        minutes=21,
        share=4,
        policy="on_change",
        standing="building",
    ),
    Plan(
        name="helios-tools",
        description=f"{_HELIOS} editors and converters for Windows.",
        depot="helios/tools",
        tool="msvc",
        files=3_100,
        gib=22,
        minutes=11,
        share=4,
        standing="failed",
    ),
    Plan(
        name="shader-library",
        description="All shaders with the caches that take hours to fill.",
        depot="helios/shaders",
        tool="make",
        files=2_200,
        gib=96,
        minutes=64,
        share=2,
        has_test=False,
    ),
    Plan(
        name="driftline-main",
        description="The racing game: main line.",
        depot="driftline/main",
        tool="unreal",
        files=12_600,
        gib=231,
        minutes=29,
        share=9,
        policy="on_change",
    ),
    Plan(
        name="driftline-release",
        description="The racing game: season four, as it is out.",
        depot="driftline/rel-4",
        tool="unreal",
        files=12_100,
        gib=224,
        minutes=27,
        share=3,
        policy="manual",
    ),
    Plan(
        name="driftline-server",
        description="The racing game: lobby and race servers.",
        depot="driftline/server",
        tool="make",
        files=1_900,
        gib=9,
        minutes=6,
        share=2,
    ),
    Plan(
        name="hexforge",
        description="The strategy game, on Helios.",
        depot="hexforge/main",
        tool="make",
        files=4_800,
        gib=39,
        minutes=16,
        share=4,
    ),
    Plan(
        name="launcher",
        description="The launcher and patcher for Windows.",
        depot="launcher/main",
        tool="msvc",
        files=1_400,
        gib=5,
        minutes=7,
        share=2,
    ),
    Plan(
        name="matchmaker",
        description="Online: matchmaking and parties.",
        depot="online/matchmaker",
        tool="maven",
        files=1_300,
        gib=3,
        minutes=5,
        share=3,
        policy="on_change",
    ),
    Plan(
        name="telemetry",
        description="Online: what games report, and its dashboards.",
        depot="online/telemetry",
        tool="maven",
        files=1_100,
        gib=3,
        minutes=6,
        share=1,
        standing="failed",
    ),
    Plan(
        name="stormglass-main",
        description="The mobile game: main line, Android and iOS.",
        depot="stormglass/main",
        tool="unreal",
        files=7_800,
        gib=88,
        minutes=24,
        share=7,
        policy="on_change",
        is_abroad=True,
    ),
    Plan(
        name="stormglass-live",
        description="The mobile game: what is in the stores.",
        depot="stormglass/live",
        tool="unreal",
        files=7_500,
        gib=84,
        minutes=23,
        share=2,
        is_abroad=True,
    ),
    Plan(
        name="stormglass-backend",
        description="The mobile game: its services.",
        depot="stormglass/backend",
        tool="maven",
        files=1_600,
        gib=4,
        minutes=6,
        share=2,
        is_abroad=True,
        standing="building",
    ),
    Plan(
        name="asset-tools",
        description="Importers, exporters and checks for artists.",
        depot="tools/assets",
        tool="python",
        files=1_200,
        gib=6,
        minutes=3,
        share=3,
        policy="on_change",
    ),
    Plan(
        name="cinematics",
        description="Cutscenes with everything that they need to be rendered.",
        depot="aurora/cinematics",
        tool="python",
        files=3_600,
        gib=540,
        minutes=12,
        share=2,
        policy="manual",
        has_test=False,
    ),
    Plan(
        name="localization",
        description="Texts and voices in fourteen languages.",
        depot="tools/localization",
        tool="python",
        files=2_700,
        gib=61,
        minutes=4,
        share=1,
        is_abroad=True,
    ),
    Plan(
        name="stormglass-prototype",
        description="The sequel of the mobile game: an experiment.",
        depot="stormglass/prototype",
        tool="unreal",
        files=2_100,
        gib=31,
        minutes=10,
        share=0,
        policy="manual",
        is_abroad=True,
        standing="new",
    ),
)


def plans(number: int) -> Iterator[Plan]:
    """Yield so many plans; beyond those above there are branches of them."""
    yield from PLANS[:number]
    for branch in range(number - len(PLANS)):
        again, place = divmod(branch, len(PLANS) - 1)
        origin = PLANS[place]
        yield replace(
            origin,
            name=f"{origin.name}-b{again + 1}",
            description=f"{origin.description} A branch.",
            depot=f"{origin.depot}-b{again + 1}",
            files=max(origin.files // 20, 100),
            share=origin.share / 4,
            standing="ready",
        )
