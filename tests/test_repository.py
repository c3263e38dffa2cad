"""What has to stay in step in this repository, because nobody remembers to."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command, get_commands
from django.db.models import JSONField
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Path = settings.BASE_DIR

TOP_LEVEL = {
    # what the project is
    *("manage.py", "provisioner", "templates", "static", "requirements.txt"),
    *("requirements.lock", "tests", "docker", "README.md"),
    # what tools and readers need beside it
    *("pyproject.toml", "Makefile", "CHANGELOG.md", "docs", ".ci", "benchmarks"),
    *("LICENSE", "NOTICE", "CONTRIBUTING.md", "SECURITY.md"),
    ".gitignore",
}

# Who asks its own clock what time it is, and why. Elsewhere the database says it.
USES_ITS_OWN_CLOCK = {
    "provisioner/web/templatetags/cloneyard.py": "says how long ago something was",
    "provisioner/web/http.py": "names a file that is downloaded",
    "provisioner/catalog/forms/choices.py": "says how long ago something was",
    "provisioner/maintenance/templatetags/maintenance.py": "says whether it has begun",
    "provisioner/engine/overviews.py": "shows how long something has been taking",
    "provisioner/engine/retries.py": "when Procrastinate tries a job again: the job "
    "manager sets that right by what it knows of the clock",
    "provisioner/workspaces/api/shapes.py": "shows deadlines",
    "provisioner/workspaces/unsubmitted.py": "says whether a check is recent",
    "provisioner/leases/views.py": "shows a deadline",
    "provisioner/sites/availability.py": "says for how long ONTAP has not worked",
    "provisioner/workspace_requests/obstacles.py": "says for how long a slot is waited "
    "for",
    "provisioner/workspace_requests/claim.py": "shows what a pool has: claims ask the "
    "database",
    "provisioner/dashboard/savings.py": "the months of a table",
    "provisioner/dashboard/offers.py": "the order of a list",
    "provisioner/leases/abandoned.py": "lists: who acts on them asks the database",
    "provisioner/accounts/tokens.py": "says that a token has expired: knox decides",
    "provisioner/accounts/sessions.py": "spares writes of when a session was used",
    "provisioner/accounts/throttling.py": "spares writes of when a token was used",
    "provisioner/dashboard/spans.py": "the moment that a plot ends with",
    "provisioner/dashboard/queries.py": "the overview",
    "provisioner/dashboard/overviews.py": "the page of a workspace",
    "provisioner/dashboard/lists.py": "a list",
    "provisioner/sites/slots_overview.py": "the page of slots",
    "provisioner/people/views/sign_in.py": "shows which tokens have expired",
    "provisioner/pools/queries.py": "shows how long a pool pauses",
}

# Who reads or writes the environment beside settings.py, and why.
USES_ENVIRONMENT = {
    "provisioner/server.py": "says which settings Django takes",
    "provisioner/wsgi.py": "says which settings Django takes",
    "provisioner/webserver.py": "says which settings Django takes",
    "provisioner/cli/cloneyard.py": "a program of its own, on people's machines",
    "provisioner/api_client/mcp_server.py": "the same",
    "provisioner/api_client/generate.py": "the generator finds ruff on its PATH",
    "provisioner/gateways/perforce/connection.py": "keeps P4 variables of whoever "
    "started us away from Perforce's library",
    "provisioner/gateways/perforce/trust.py": "Perforce's library reads P4TRUST only",
    "provisioner/demo/checks.py": "a developer's shell needs PATH and P4CONFIG",
    "provisioner/demo/chromium.py": "the browser needs a directory for what it makes",
    "provisioner/demo/processes.py": "children inherit what the demo was given",
    "provisioner/demo/company/opening.py": "hands on the second lab's password",
    "provisioner/demo/run.py": "hands the lab's passwords to settings, as operators do",
    "provisioner/lab/ontap/__main__.py": "a program of its own, without our settings",
    "provisioner/lab/perforce/__main__.py": "a program of its own, without ours",
}


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True
    )
    return [path for path in listed.stdout.decode().split("\0") if path]


@pytest.fixture(scope="module")
def _in_git() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")


def names_in_settings() -> set[str]:
    """Return each name that settings.py asks the environment for."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / "provisioner/settings.py").read_text())):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        asked = ast.unparse(node.func)
        name = node.args[0]
        is_lookup = asked.startswith("env.") or asked == "_secret"
        if is_lookup and isinstance(name, ast.Constant):
            found.add(str(name.value))
    return found


def names_in_docs() -> set[str]:
    """Return the names in the first column of the table; NAME_<SITE> is a pattern."""
    rows = (ROOT / "docs/configuration.md").read_text().splitlines()
    first_cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    names = {name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}
    return {name for name in names if "<" not in name}


def names_in_example() -> list[str]:
    lines = (ROOT / "docker/.env.example").read_text().splitlines()
    return [
        line.removeprefix("#").strip().partition("=")[0]
        for line in lines
        if re.match(r"#?\s*[A-Z0-9_]+=", line)
    ]


def test_settings_their_page_and_the_example_name_the_same() -> None:
    names = names_in_settings()

    assert len(names) > 15
    assert names_in_docs() == names
    assert set(names_in_example()) == names
    assert len(names_in_example()) == len(names)


def test_what_the_security_page_names_exists() -> None:
    """Each test by name, with its file where that is named, and each module."""
    page = (ROOT / "docs/security.md").read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)(?:\[[^`]*\])?`", page))
    files = set(re.findall(r"`([\w/]+\.py)`", page))
    there = [str(path) for path in ROOT.rglob("*.py") if ".venv" not in path.parts]

    assert len(named) > 100
    assert {name for name in named if f"def {name}(" not in tests} == set()
    assert {
        name for name in files if not any(path.endswith(f"/{name}") for path in there)
    } == set()


def test_the_state_diagrams_are_not_stale() -> None:
    call_command("state_diagrams", "--check")


def test_every_requirement_is_pinned_and_has_its_reason() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    requirements = [line for line in lines if line and not line.startswith("#")]

    assert len(requirements) > 20
    pinned_with_reason = re.compile(r"[A-Za-z0-9.-]+(\[[a-z0-9,-]+\])?==[^ ]+ +# .{8,}")
    assert not [line for line in requirements if not pinned_with_reason.fullmatch(line)]
    names = [line.partition("=")[0].partition("[")[0].lower() for line in requirements]
    assert len(set(names)) == len(names)


def test_what_production_installs_is_pinned_by_hash_as_a_whole() -> None:
    """`make lock` is due after a change of requirements.txt."""
    wanted = (ROOT / "requirements.txt").read_text().partition("# --- development")[0]
    asked = [Requirement(line) for line in re.findall(r"^[^#\s]+", wanted, re.M)]
    locked = {
        canonicalize_name(name): (version, hashes)
        for name, version, hashes in re.findall(
            r"^([^#\s]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
            (ROOT / "requirements.lock").read_text(),
            re.M,
        )
    }

    assert len(locked) == (ROOT / "requirements.lock").read_text().count("==")
    for requirement in asked:
        version, _ = locked[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement}: make lock"
    assert needed_by(asked) <= set(locked), "make lock"
    assert (
        "--require-hashes -r requirements.lock"
        in (ROOT / "docker/Dockerfile").read_text()
    )


def needed_by(asked: list[Requirement]) -> set[str]:
    """Return the names of all that these need, as installed here."""
    names: set[str] = set()
    while asked:
        requirement = asked.pop()
        name = canonicalize_name(requirement.name)
        if name in names and not requirement.extras:
            continue
        names.add(name)
        for line in importlib.metadata.requires(name) or ():
            needs = Requirement(line)
            extras = requirement.extras or {""}
            if needs.marker is None or any(
                needs.marker.evaluate({"extra": extra}) for extra in extras
            ):
                asked.append(needs)
    return names


@pytest.mark.usefixtures("_in_git")
def test_nothing_lies_about_at_the_top() -> None:
    assert {path.split("/")[0] for path in tracked()} <= TOP_LEVEL


def environment_uses() -> Iterator[str]:
    sources = [ROOT / "manage.py", *(ROOT / "provisioner").rglob("*.py")]
    for source in sources:
        text = source.read_text()
        if not re.search(r"environ|getenv|putenv|from\s+os\s", text):
            continue  # to take all apart takes seconds
        for node in ast.walk(ast.parse(text)):
            is_use = (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "os"
                and node.attr in {"environ", "environb", "getenv", "putenv"}
            )
            is_import = isinstance(node, ast.ImportFrom) and node.module == "os"
            if is_use or is_import:
                yield str(source.relative_to(ROOT))


def test_only_settings_read_the_environment() -> None:
    assert set(environment_uses()) == set(USES_ENVIRONMENT)


# Every function that lists a directory, and why it meets no .snapshot of a volume.
SKIPS = "passes the name over"
OTHER = "lists no tree of ours"
LISTS_DIRECTORIES = {
    "gateways/hosts/checkpoint_files.py:database_bytes": "adds up files db.* alone",
    "gateways/hosts/clearing.py:_entries": SKIPS,
    "gateways/hosts/descent.py:_listed": SKIPS,
    "gateways/hosts/file_digests.py:_descend": SKIPS,
    "gateways/hosts/log_files.py:close_logs": OTHER,
    "gateways/hosts/mounts.py:is_visible": "forgets the names at once",
    "gateways/hosts/p4d.py": "reads /proc",
    "gateways/hosts/page_cache.py:forget": SKIPS,
    "gateways/hosts/recency.py:_below": SKIPS,
    "gateways/hosts/recency.py:_check_files_in": "takes files alone",
    "gateways/hosts/rescues/place.py:_prepare": OTHER,
    "gateways/hosts/rescues/place.py:_remove": OTHER,
    "gateways/hosts/rescues/place.py:clear": OTHER,
    "gateways/hosts/rescues/place.py:publish": OTHER,
    "gateways/hosts/root_paths.py:_writable_files": SKIPS,
    "gateways/hosts/sampling.py:_sampled": SKIPS,
    "gateways/hosts/sandbox/cgroup.py": OTHER,
    "gateways/hosts/sandbox/init.py": OTHER,
    "gateways/hosts/scratch.py:scratch_left": OTHER,
    "gateways/hosts/snapshot_files.py:entries_of": SKIPS,
    "gateways/hosts/trees/native.py": OTHER,
    "gateways/hosts/trees/sequential.py:_list": SKIPS,
    "gateways/hosts/writers.py": "reads /proc",
    "gateways/perforce/batching.py:_directories_in": SKIPS,
}
_LISTS = {"scandir", "listdir", "walk", "fwalk", "iterdir", "glob", "rglob"}


def lists_of(source: Path) -> Iterator[str]:
    """Yield "file:function" for each place that lists a directory."""
    name = str(source.relative_to(ROOT / "provisioner"))

    def below(node: ast.AST, function: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef) else function
            if (
                isinstance(child, ast.Call)
                and isinstance(child.func, ast.Attribute)
                and child.func.attr in _LISTS
            ):
                yield f"{name}:{inside}"
            yield from below(child, inside)

    yield from below(ast.parse(source.read_text()), "")


def test_the_clock_of_a_process_decides_nothing() -> None:
    """Whoever compares times or keeps them takes the database's."""
    ours = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "provisioner").rglob("*.py")
        if not {"lab", "demo", "migrations"} & set(file.parts)
        and re.search(r"timezone\.now\b|auto_now", file.read_text())
    }

    assert ours == set(USES_ITS_OWN_CLOCK)


def test_no_walk_enters_what_a_file_server_shows_of_its_snapshots() -> None:
    """A new one is added here, with a test in test_snapshot_directories.py."""
    for_all = {place for place in LISTS_DIRECTORIES if ":" not in place}
    found = {
        place.partition(":")[0] if place.partition(":")[0] in for_all else place
        for source in (ROOT / "provisioner/gateways").rglob("*.py")
        for place in lists_of(source)
    }

    assert found == set(LISTS_DIRECTORIES)


def names_of_task(node: ast.AST) -> Iterator[str]:
    """Yield the name that a decorator gives a task."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "app.task":
        for keyword in node.keywords:
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def test_a_worker_knows_every_task() -> None:
    """Those of features are found by the name of their module, in a process anew."""
    named = set()
    for path in tracked("provisioner/**/*.py", "provisioner/*/*.py"):
        calls = ast.walk(ast.parse((ROOT / path).read_text()))
        named |= {name for call in calls for name in names_of_task(call)}
    asked = (
        "import django; django.setup()\n"
        "from procrastinate.contrib.django import app\n"
        "app.perform_import_paths(); print(*app.tasks)"
    )
    known = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "provisioner.settings"},
    )
    assert named
    assert named <= set(known.stdout.split())


@pytest.mark.usefixtures("_in_git")
def test_no_test_needs_another_test() -> None:
    """What several tests share lies in a module named for what it gives."""
    shared = re.compile(
        r"\b(?:from|import) tests(?:\.\w+)*\.(?:test_\w+|conftest)\b"
        r"|\bfrom tests(?:\.\w+)* import (?:test_\w+|conftest)\b"
    )
    found = [
        path
        for path in tracked("tests/*.py")
        if shared.search((ROOT / path).read_text())
    ]
    assert found == []


# What documents name that is not in the repository.
ELSEWHERE = {
    "cloneyard.cdx.json",
    "p4flex.conf",
    "p4test.py",
    "manifest.json",
    "nfs.conf",
    "ROOT/faults.json",
    ".vscode/tasks.json",
}


def pages_of_documents() -> dict[str, str]:
    return {path: (ROOT / path).read_text() for path in tracked("*.md")}


@pytest.mark.usefixtures("_in_git")
def test_documents_link_to_what_is_there() -> None:
    for page, text in pages_of_documents().items():
        links = re.findall(r"\]\((?!https?:|/|#)([^)#]+)", text)
        missing = [
            link for link in links if not (ROOT / page).parent.joinpath(link).exists()
        ]

        assert not missing, page


@pytest.mark.usefixtures("_in_git")
def test_documents_name_files_that_are_there() -> None:
    endings = {
        "/".join(path.split("/")[start:])
        for path in tracked()
        for start in range(path.count("/") + 1)
    }
    name = r"`([\w./-]+\.(?:py|c|md|toml|yaml|sh|html|conf|service|json))(?::[^`]*)?`"
    for page, text in pages_of_documents().items():
        assert not set(re.findall(name, text)) - endings - ELSEWHERE, page


@pytest.mark.usefixtures("_in_git")
def test_documents_name_commands_that_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    commands = set(get_commands())
    for page, text in pages_of_documents().items():
        assert set(re.findall(r"[`\n]make ([a-z-]+)", text)) <= targets, page
        assert set(re.findall(r"manage\.py ([a-z_]+)", text)) <= commands, page


@pytest.mark.usefixtures("_in_git")
def test_documents_name_tests_that_are_there() -> None:
    tests = "\n".join((ROOT / path).read_text() for path in tracked("tests/*.py"))
    files = {Path(path).stem for path in tracked("tests/*.py")}
    names = files | set(re.findall(r"def (test_\w+)", tests))
    for page, text in pages_of_documents().items():
        assert set(re.findall(r"`(test_\w+_\w+)[`\[]", text)) <= names, page


def test_each_json_column_has_its_reason() -> None:
    columns = {
        f"{model._meta.object_name}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if model.__module__.startswith("provisioner.") and isinstance(field, JSONField)
    }
    document = (ROOT / "docs" / "architecture.md").read_text()
    section = document.partition("## JSON in the database")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([A-Z]\w+\.[a-z_]+)`", section)) == columns
