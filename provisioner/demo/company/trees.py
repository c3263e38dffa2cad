"""File names in the trees of the studio, as each tool names them."""

from __future__ import annotations

from functools import cache
from itertools import count, islice

from provisioner.demo.company.plans import BUILD_SCRIPT, Plan, Tool

_PATTERNS: dict[Tool, tuple[str, ...]] = {
    "unreal": (
        *("Source/Runtime/Private/{}.cpp", "Source/Runtime/Public/{}.h"),
        *("Source/Editor/Private/{}Editor.cpp", "Source/Editor/Public/{}Editor.h"),
        *("Content/Characters/{}.uasset", "Content/Maps/{}.umap"),
        *("Content/Materials/M_{}.uasset", "Content/Audio/{}.uasset"),
    ),
    "make": (
        *("src/core/{}.cc", "src/core/{}_test.cc", "include/helios/{}.h"),
        *("src/render/{}Pass.cc", "src/render/{}Pass.h", "shaders/{}.hlsl"),
    ),
    "msvc": (
        *("Source/Application/{}View.cpp", "Source/Application/{}View.h"),
        *("Source/Platform/{}.cpp", "Source/Shared/{}.h", "Resources/{}.rc"),
    ),
    "maven": (
        *("src/main/java/org/studio/{}.java", "src/main/java/org/studio/web/{}.java"),
        *("src/test/java/org/studio/{}Test.java", "src/main/resources/{}.sql"),
    ),
    "python": (
        *("assets/importers/{}.py", "assets/checks/{}.py", "data/{}.json"),
        *("data/{}.csv", "voices/{}.wem"),
    ),
}
_NAMES = (
    *("Actor", "Animation", "Asset", "Audio", "Camera", "Character", "Collision"),
    *("Combat", "Dialogue", "Effect", "Foliage", "Input", "Inventory", "Level"),
    *("Light", "Lobby", "Material", "Mesh", "Mission", "Navigation", "Network"),
    *("Particle", "Physics", "Player", "Quest", "Render", "Replay", "Session"),
    *("Shader", "Skeleton", "Sound", "Spawn", "Sprite", "Stream", "Terrain"),
    *("Texture", "Vehicle", "Water", "Weapon", "Weather"),
)


@cache
def paths_of(plan: Plan) -> tuple[str, ...]:
    """Return the depot paths of a template's tree; its build script is the first."""
    names = (
        pattern.format(f"{name}{number}" if number else name)
        for number in count()
        for name in _NAMES
        for pattern in _PATTERNS[plan.tool]
    )
    found = (BUILD_SCRIPT, *islice(names, plan.files - 1))
    return tuple(f"{plan.depot_path}/{path}" for path in found)
