"""Logs of builds: output of compilers and build tools, with their errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from provisioner.demo.company.plans import Plan, Tool
from provisioner.demo.company.trees import paths_of

LINES_OF_A_GOOD_BUILD = (90, 240)
COMPILED = (".cpp", ".cc", ".java", ".json", ".csv")
LINES_AFTER_AN_ERROR = (3, 30)


def log_of(plan: Plan, chance: random.Random, *, change: int, fails: bool) -> str:
    """Return what a build of a template printed."""
    sources = [path for path in paths_of(plan)[1:] if path.endswith(COMPILED)]
    chosen = chance.sample(sources, k=min(len(sources), 240))
    names = [path.removeprefix(f"{plan.depot_path}/") for path in chosen]
    number = chance.randrange(*LINES_OF_A_GOOD_BUILD)
    progress = list(_PROGRESS[plan.tool](names, number))
    lines = [*_begin(plan, change)]
    if fails:
        lines += progress[: chance.randrange(10, len(progress))]
        lines += _ERRORS[plan.tool](chance, names)
        lines += progress[-chance.randrange(*LINES_AFTER_AN_ERROR) :]
        lines += _AFTERWARDS[plan.tool]
    else:
        lines += progress
        lines += _ENDINGS[plan.tool]
    return "\n".join(lines) + "\n"


def test_log_of(plan: Plan, chance: random.Random, *, fails: bool) -> str:
    """Return what the tests of a template printed."""
    names = [
        path.rpartition("/")[2].partition(".")[0]
        for path in chance.sample(paths_of(plan)[1:], k=40)
    ]
    lines = [f"[{n:3}/40] {name} ... ok" for n, name in enumerate(names, start=1)]
    if fails:
        name = names[27]
        lines[27] = f"[ 28/40] {name} ... FAILED"
        lines += [
            "",
            f"{name}.test.cpp:{chance.randrange(40, 400)}: error: Expected equality of "
            "these values:",
            f"  restored.checksum  which is: {chance.getrandbits(32):#x}",
            f"  saved.checksum     which is: {chance.getrandbits(32):#x}",
            f"FAILED: 1 of 40 tests ({name})",
        ]
    else:
        lines.append("40 tests passed.")
    return "\n".join(lines) + "\n"


def _begin(plan: Plan, change: int) -> list[str]:
    return [
        f"+ {plan.build_command}",
        f"CLONEYARD_CHANGE={change}",
        "Using 64 processors, 256 GB of memory",
    ]


# --- what a tool says while it goes on


def _of_unreal(names: list[str], number: int) -> Iterator[str]:
    yield "Using Unreal Build Tool (Engine/Binaries/DotNET/UnrealBuildTool.dll)"
    yield "Determining max actions to execute in parallel (32 physical cores)"
    for n in range(1, number):
        name = names[n % len(names)].rpartition("/")[2]
        yield f"[{n}/{number}] Compile [x64] {name}"
    yield f"[{number}/{number}] Link [x64] libUnrealEditor-Game.so"


def _of_make(names: list[str], number: int) -> Iterator[str]:
    for n in range(number):
        name = names[n % len(names)]
        out = name.rpartition("/")[2].partition(".")[0]
        yield f"g++ -std=c++20 -O2 -g -Wall -Iinclude -c {name} -o out/{out}.o"
        if n % 19 == 7:
            yield (
                f"{name}:{88 + n}:17: warning: unused variable 'previous' "
                "[-Wunused-variable]"
            )


def _of_msvc(names: list[str], number: int) -> Iterator[str]:
    yield "MSBuild version 17.11.9+a69bbaaf5 for .NET Framework"
    yield "ClCompile:"
    for n in range(number):
        yield f"  {names[n % len(names)].rpartition('/')[2]}"


def _of_maven(names: list[str], number: int) -> Iterator[str]:
    yield "[INFO] Scanning for projects..."
    for n in range(1, number // 4):
        module = names[n % len(names)].rpartition("/")[2].partition(".")[0].lower()
        yield f"[INFO] ---< org.studio:{module} >---"
        yield f"[INFO] Building {module} 4.2.0-SNAPSHOT [{n}/{number // 4}]"
        yield "[INFO] Nothing to compile - all classes are up to date."
        yield f"[INFO] Building jar: {module}/target/{module}-4.2.0-SNAPSHOT.jar"


def _of_python(names: list[str], number: int) -> Iterator[str]:
    for n in range(number):
        yield f"converting {names[n % len(names)]}"


_PROGRESS: dict[Tool, Callable[[list[str], int], Iterator[str]]] = {
    "unreal": _of_unreal,
    "make": _of_make,
    "msvc": _of_msvc,
    "maven": _of_maven,
    "python": _of_python,
}

# --- what it says of an error


def _unreal_errors(chance: random.Random, names: list[str]) -> list[str]:
    name, line = chance.choice(names), chance.randrange(20, 1900)
    return chance.choice(
        (
            [
                f"{name}({line}): error: no member named 'GetReplicatedState' in "
                "'UAbilityComponent'",
                "        const auto State = Abilities->GetReplicatedState();",
                "                           ~~~~~~~~~  ^",
                "1 error generated.",
            ],
            [
                f"{name}({line}): Error: Unrecognized type 'FQuestHandle' - type must "
                "be a UCLASS, USTRUCT, UENUM, or global delegate.",
                "UnrealHeaderTool failed for target 'UnrealEditor'.",
            ],
            [
                "ld.lld: error: undefined symbol: UMissionSubsystem::Complete(FName)",
                f">>> referenced by {name}:{line}",
                ">>>               MissionTracker.cpp.o:(UMissionTracker::Tick(float))",
                "clang++: error: linker command failed with exit code 1",
            ],
        )
    )


def _make_errors(chance: random.Random, names: list[str]) -> list[str]:
    name, line = chance.choice(names), chance.randrange(20, 900)
    return chance.choice(
        (
            [
                f"{name}: In member function 'void helios::FramePass::submit()':",
                f"{name}:{line}:21: error: 'class helios::CommandList' has no member "
                "named 'barrier'; did you mean 'barriers'?",
                f"  {line} |         commands_->barrier(resource);",
                "      |                    ^~~~~~~",
            ],
            [
                "/usr/bin/ld: out/Session.o: in function `helios::Session::open()':",
                f"{name}:{line}: undefined reference to `helios::Clock::now()'",
                "collect2: error: ld returned 1 exit status",
            ],
        )
    )


def _msvc_errors(chance: random.Random, names: list[str]) -> list[str]:
    name, line = chance.choice(names), chance.randrange(20, 900)
    windows = name.replace("/", "\\")
    return chance.choice(
        (
            [
                f"D:\\build\\{windows}({line},14): error C2039: 'wait_for': is not a "
                "member of 'studio::Task' [Application.vcxproj]",
                f"D:\\build\\{windows}({line},14): message : see declaration of "
                "'studio::Task' [Application.vcxproj]",
            ],
            [
                "LobbyView.obj : error LNK2019: unresolved external symbol "
                '"public: void __cdecl Session::close(void)" [Application.vcxproj]',
                "x64\\Application.exe : fatal error LNK1120: 1 unresolved externals "
                "[Application.vcxproj]",
            ],
        )
    )


def _maven_errors(chance: random.Random, names: list[str]) -> list[str]:
    name, line = chance.choice(names), chance.randrange(20, 400)
    return [
        "[ERROR] COMPILATION ERROR :",
        f"[ERROR] /build/{name}:[{line},29] cannot find symbol",
        "[ERROR]   symbol:   method partyOf(java.util.UUID)",
        "[ERROR]   location: interface org.studio.LobbyRepository",
    ]


def _python_errors(chance: random.Random, names: list[str]) -> list[str]:
    name = chance.choice(names)
    return [
        "Traceback (most recent call last):",
        f'  File "assets/importers/Mesh.py", line {chance.randrange(30, 300)}, in load',
        f'    raise ImportFailed(f"{name}: {{reason}}")',
        f"assets.ImportFailed: {name}: 14 vertices have no weight",
    ]


_ERRORS: dict[Tool, Callable[[random.Random, list[str]], list[str]]] = {
    "unreal": _unreal_errors,
    "make": _make_errors,
    "msvc": _msvc_errors,
    "maven": _maven_errors,
    "python": _python_errors,
}
_AFTERWARDS: dict[Tool, list[str]] = {
    "unreal": [
        "Result: Failed (OtherCompilationError)",
        "Total execution time: 1124.77 seconds",
        "AutomationTool exiting with ExitCode=6 (Error_UnknownBuildFailure)",
    ],
    "make": [
        "make[1]: *** [Makefile:212: out/libhelios.a] Error 1",
        "make: *** [Makefile:31: all] Error 2",
    ],
    "msvc": ["Build FAILED.", "    4 Warning(s)", "    1 Error(s)"],
    "maven": ["[INFO] BUILD FAILURE", "[INFO] Total time:  01:12 min"],
    "python": ["error: 1 of 812 assets could not be converted"],
}
_ENDINGS: dict[Tool, list[str]] = {
    "unreal": ["Result: Succeeded", "BUILD SUCCESSFUL"],
    "make": ["ar rcs out/libhelios.a out/*.o", "make: done"],
    "msvc": ["Build succeeded.", "    4 Warning(s)", "    0 Error(s)"],
    "maven": ["[INFO] BUILD SUCCESS", "[INFO] Total time:  04:51 min"],
    "python": ["812 assets converted, 0 errors"],
}
