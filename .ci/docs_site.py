"""What `properdocs build` takes from the project: navigation, and pages at its root.

Source: https://properdocs.org/user-guide/configuration/#hooks
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from properdocs.structure.files import File

from provisioner.help.groups import AT_THE_ROOT, GROUPS

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Order the pages as below /help/."""
    docs = ROOT / "docs"
    named = {page for _, pages in GROUPS for page in pages}
    rest = sorted(path.stem for path in docs.glob("*.md") if path.stem not in named)
    nav: list[Any] = [{"Home": "index.md"}]
    for title, pages in GROUPS:
        paths = [path for page in pages or rest for path in _paths_of(page)]
        if paths:
            nav.append({title: paths})
    config["nav"] = nav
    return config


def _paths_of(page: str) -> list[str]:
    folder = ROOT / "docs" / page
    if not folder.is_dir():
        return [f"{page}.md"]
    paths = sorted(
        folder.rglob("*.md"), key=lambda path: (path.name != "README.md", path)
    )
    return [str(path.relative_to(ROOT / "docs")) for path in paths]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages at the root, and a first one with the groups."""
    for path, name in AT_THE_ROOT.items():
        text = (ROOT / path).read_text()
        files.append(File.generated(config, f"{name}.md", content=text))
    files.append(File.generated(config, "index.md", content=_home()))
    return files


def _home() -> str:
    lines = [
        "# Cloneyard",
        "",
        "Built Perforce workspaces in seconds, from FlexClones.",
    ]
    for title, pages in GROUPS:
        lines += ["", f"## {title}", ""] if pages else []
        for page in pages:
            path = _paths_of(page)[0]
            lines.append(f"- [{_title_of(page, path)}]({path})")
    return "\n".join(lines)


def _title_of(page: str, path: str) -> str:
    roots = {name: at for at, name in AT_THE_ROOT.items()}
    file = ROOT / roots[page] if page in roots else ROOT / "docs" / path
    return file.read_text().partition("\n")[0].lstrip("# ")


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Lead links among documents to pages; drop those to files that have none."""
    roots = {name: at for at, name in AT_THE_ROOT.items()}
    name = page.file.src_uri.removesuffix(".md")
    here = roots.get(name, f"docs/{page.file.src_uri}")

    def lead(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[1]))
        inside = target.removeprefix("docs/")
        if target in AT_THE_ROOT:
            inside = f"{AT_THE_ROOT[target]}.md"
        elif not target.startswith("docs/") or (ROOT / target).is_dir():
            return "]"  # a file of the project, which the site does not have
        shown = posixpath.relpath(inside, posixpath.dirname(page.file.src_uri) or ".")
        return f"]({shown}{link[2] or ''})"

    return LINK.sub(lead, text)
