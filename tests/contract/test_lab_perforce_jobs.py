"""Jobs, and the changes that fix them, as the official client sees them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.lab_perforce import Workspace, lab_server, refused, workspace


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    directory = tmp_path_factory.mktemp("jobs")
    with lab_server(directory) as server:
        ws = workspace(server, directory, name="ws", depot="//depot")
        ws.add({"a": "1\n"})
        yield ws


@pytest.fixture
def ws(served: Workspace) -> Iterator[Workspace]:
    """Yield a client of a server without jobs."""
    yield served
    for fix in served.p4.run("fixes"):
        served.p4.run("fix", "-d", "-c", fix["Change"], fix["Job"])
    for job in served.p4.run("jobs"):
        served.p4.run("job", "-d", job["Job"])


def make(ws: Workspace, name: str, **fields: str) -> str:
    form = {"Status": "open", "User": "cloneyard", "Description": f"about {name}\n"}
    ws.p4.input = {"Job": name, **form, **fields}
    return str(ws.p4.run("job", "-i")[0])


def status_of(ws: Workspace, name: str) -> str:
    return str(ws.p4.run("job", "-o", name)[0]["Status"])


def test_jobs_are_kept_named_and_listed(ws: Workspace) -> None:
    assert ws.p4.run("job", "-o")[0]["Job"] == "new"
    assert make(ws, "new") == "Job job000001 saved."
    assert make(ws, "6060842", Status="suspended") == "Job 6060842 saved."
    assert make(ws, "6060842", Status="suspended") == "Job 6060842 not changed."

    assert [job["Job"] for job in ws.p4.run("jobs")] == ["6060842", "job000001"]
    [job] = ws.p4.run("jobs", "-m1", "-r")
    assert (job["Job"], job["Status"]) == ("job000001", "open")
    [line] = ws.p4.run("jobs", "-e", "status=suspended", tagged=False)
    assert line.startswith("6060842 on 20")
    assert line.endswith(" by cloneyard *suspended* 'about 6060842'")
    assert ws.p4.run("job", "-d", "6060842") == ["Job 6060842 deleted."]
    assert refused(ws.p4, "job", "-d", "6060842") == 6182


@pytest.mark.parametrize(
    ("view", "found"),
    [
        ("Status=open", ["one", "three"]),
        ("status=SUSPENDED", ["two"]),
        ("about & three", ["three"]),
        ("one | two", ["one", "two"]),
        ("^status=open", ["two"]),
        ("job=t*", ["three", "two"]),
        ("abo*", ["one", "three", "two"]),
        ("nothing", []),
    ],
)
def test_a_jobview_chooses(ws: Workspace, view: str, found: list[str]) -> None:
    for name in ("one", "two", "three"):
        make(ws, name, Status="suspended" if name == "two" else "open")

    assert [job["Job"] for job in ws.p4.run("jobs", "-e", view)] == found


def test_a_fix_of_a_submitted_change_closes_its_job(ws: Workspace) -> None:
    make(ws, "bug")
    said = ws.p4.run("fix", "-c", "1", "bug")
    assert said == ["bug fixed by change 1 (closed)."]
    assert status_of(ws, "bug") == "closed"
    [fix] = ws.p4.run("fixes", "//depot/...")
    assert (fix["Job"], fix["Change"], fix["Status"]) == ("bug", "1", "closed")
    assert [job["Job"] for job in ws.p4.run("jobs", "//depot/a")] == ["bug"]
    assert ws.p4.run("jobs", "//depot/b") == []
    described = ws.p4.run("describe", "-s", "1")[0]
    assert (described["job"], described["jobstat"]) == (["bug"], ["closed"])
    text = "\n".join(ws.p4.run("describe", "-s", "1", tagged=False))
    assert "Jobs fixed ..." in text
    assert "*closed*\n\n\tabout bug" in text
    assert "1 fixes associated" in ws.p4.run("job", "-d", "bug")[0]
    assert ws.p4.run("fix", "-d", "-c", "1", "bug") == ["Deleted fix bug by change 1."]
    assert refused(ws.p4, "fix", "-d", "-c", "1", "bug") == 6184
    assert refused(ws.p4, "fix", "-s", "done", "-c", "1", "bug") == 6232
    assert refused(ws.p4, "fix", "-c", "1", "nobug") == 6182


def test_jobs_of_a_change_are_closed_when_it_is_submitted(ws: Workspace) -> None:
    for name in ("one", "two", "three"):
        make(ws, name)
    form = ws.p4.fetch_change()
    form["Description"], form["Jobs"] = "a change", ["one", "two"]
    number = ws.p4.save_change(form)[0].split()[1]
    pending = ws.p4.fetch_change(number)
    assert [line.split()[0] for line in pending["Jobs"]] == ["one", "two"]
    pending["Jobs"] = ["two", "three"]
    ws.p4.save_change(pending)
    assert "2 fixes associated" in ws.p4.run("change", "-d", number)[0]
    ws.p4.run("fix", "-c", number, "-s", "same", "three")
    ws.p4.run("edit", "-c", number, "a")
    ws.write("a", "2\n")
    ws.p4.run("submit", "-c", number)

    found = {name: status_of(ws, name) for name in ("one", "two", "three")}
    assert found == {"one": "open", "two": "closed", "three": "open"}


def test_a_submit_says_what_becomes_of_its_jobs(ws: Workspace) -> None:
    make(ws, "bug")
    ws.p4.run("edit", "a")
    ws.write("a", "2\n")
    form = ws.p4.fetch_change()
    form["Description"], form["Jobs"] = "a change", ["bug"]
    ws.p4.input = form
    ws.p4.run("submit", "-s", "suspended", "-i")

    assert status_of(ws, "bug") == "suspended"
