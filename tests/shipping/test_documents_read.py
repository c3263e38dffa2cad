"""How tests read pages of the documentation: a mistake in a page is found and named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import Reader, blocks_of, reading
from tests.support.processes import is_alive

PAGE = """# A page

```sh
export GREETING=hello
```

## Greet

1. In a list:

   ```sh
   echo "$GREETING $(cat <<END
   you
   END
   )"
   ```

```yaml
key: value
```

```sh optional later
echo HOST
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with reading(tmp_path, {"PATH": os.environ["PATH"]}) as reader:
        yield reader


def test_blocks_have_their_language_words_line_and_section(page: Path) -> None:
    first, second, third, last = blocks_of(page)

    assert (first.language, first.line, first.section) == ("sh", 3, "A page")
    assert (second.line, second.section) == (11, "Greet")
    assert (third.language, third.text) == ("yaml", "key: value\n")
    assert last.words == ("optional", "later")
    assert blocks_of(page, "sh", section="A page") == [first]


def test_what_a_block_exports_the_next_one_has(page: Path, reader: Reader) -> None:
    printed = reader.run(page, blocks_of(page, "sh"), instead={"HOST": "host.test"})

    assert printed == ["", "hello you\n", "host.test\n"]


def test_a_failure_names_the_line_of_the_page(page: Path, reader: Reader) -> None:
    page.write_text(PAGE.replace("echo HOST", "true\nfalse # why"))

    with pytest.raises(AssertionError, match=rf"{page}:24: false"):
        reader.run(page, blocks_of(page, "sh"))


def test_what_a_page_does_not_say_is_not_replaced(page: Path, reader: Reader) -> None:
    with pytest.raises(AssertionError, match=r"does not say \['elsewhere'\]"):
        reader.run(page, blocks_of(page, "sh"), instead={"elsewhere": "here"})


def test_a_block_that_is_not_there_is_a_failure(page: Path, reader: Reader) -> None:
    with pytest.raises(AssertionError, match="no such block"):
        reader.run(page, blocks_of(page, "sh", section="Elsewhere"))


def test_what_a_block_starts_ends_with_the_reading(page: Path, tmp_path: Path) -> None:
    page.write_text("```sh\nsleep 600 &\necho $!\n```\n")

    with reading(tmp_path, {"PATH": os.environ["PATH"]}) as reader:
        [printed] = reader.run(page, blocks_of(page))
        assert is_alive(int(printed))

    assert not is_alive(int(printed))


def test_a_block_that_never_ends_is_a_failure(page: Path, reader: Reader) -> None:
    page.write_text("```sh\necho begun; sleep 600\n```\n")

    with pytest.raises(AssertionError, match=r"none within 1 s(.|\n)*begun"):
        reader.run(page, blocks_of(page), seconds=1)
