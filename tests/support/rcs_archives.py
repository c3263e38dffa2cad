"""Archives as p4d keeps them: RCS files of given revisions."""

from __future__ import annotations

import difflib


def archive(texts: list[bytes]) -> bytes:
    """Return an RCS file of these revisions, oldest first, as 1.1, 1.2, …"""
    numbers = [f"1.{index + 1}" for index in range(len(texts))]
    head = [
        f"head     {numbers[-1]};\naccess   ;\nsymbols  ;\nlocks    ;comment  @@;\n"
    ]
    for index in range(len(texts) - 1, -1, -1):
        following = numbers[index - 1] if index else ""
        head.append(
            f"{numbers[index]}\ndate     2014.08.08.10.25.51;  author p4;  state Exp;\n"
            f"branches ;\nnext     {following};\n"
        )
    parts = ["\n\n".join(head).encode(), b"\n\ndesc\n@@\n"]
    for index in range(len(texts) - 1, -1, -1):
        whole = index == len(texts) - 1
        text = texts[index] if whole else edit(texts[index + 1], texts[index])
        quoted = text.replace(b"@", b"@@")
        parts.append(
            b"\n\n%s\nlog\n@@\ntext\n@%s@\n" % (numbers[index].encode(), quoted)
        )
    return b"".join(parts)


def edit(newer: bytes, older: bytes) -> bytes:
    old, new = lines(newer), lines(older)
    script = b""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, begin, stop in matcher.get_opcodes():
        if tag in ("delete", "replace"):
            script += b"d%d %d\n" % (start + 1, end - start)
        if tag in ("insert", "replace"):
            script += b"a%d %d\n" % (end, stop - begin)
            script += b"".join(new[begin:stop])
    return script


def lines(text: bytes) -> list[bytes]:
    parts = text.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])
