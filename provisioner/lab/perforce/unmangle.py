"""Decrypt new passwords, which clients encrypt on their way to the server.

The cipher is Lucifer (A. Sorkin, Cryptologia 8/1, 1984) with blocks and keys of 16
bytes.

Source for the key, and for blocks of a longer password: clientPrompt and Mangle in the
published client source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from provisioner.lab.perforce import auth

_BLOCK = 16
_SUBSTITUTES = (
    (12, 15, 7, 10, 14, 13, 11, 0, 2, 6, 3, 1, 9, 4, 5, 8),
    (7, 2, 14, 9, 3, 11, 0, 4, 12, 13, 1, 10, 6, 15, 8, 5),
)
_DIFFUSION = (7, 6, 2, 1, 5, 0, 3, 4)
_PERMUTED_FROM = (2, 5, 4, 0, 3, 1, 7, 6)


def new_password(
    answer: str, *, token: str, user: str, secrets: Iterable[str]
) -> str | None:
    """Return the password in an answer to a prompt with a token; None if invalid.

    The client mixes the digest of the last typed password into the key, if there was
    one: `secrets` are the candidates, in order.
    """
    try:
        data = bytes.fromhex(answer)
    except ValueError:
        return None
    if len(data) % _BLOCK:
        return None
    for secret in ("", *secrets):
        key = auth.md5(token + user + secret)[:_BLOCK].encode()
        found = _readable(data, key)
        if found is not None:
            return found
    return None


def _readable(data: bytes, key: bytes) -> str | None:
    blocks = [
        _deciphered(data[start : start + _BLOCK], key)
        for start in range(0, len(data), _BLOCK)
    ]
    # The last block is filled up with zeros; anywhere else they mean a wrong key.
    plain = b"".join(blocks).rstrip(b"\0")
    try:
        text = plain.decode()
    except UnicodeDecodeError:
        return None
    is_whole = len(plain) > len(data) - _BLOCK
    return text if is_whole and text.isprintable() else None


def _bits(data: bytes) -> list[list[int]]:
    """Return the bits of each byte, lowest first."""
    return [[byte >> bit & 1 for bit in range(8)] for byte in data]


def _deciphered(block: bytes, key: bytes) -> bytes:
    bits, key_bits = _bits(block), _bits(key)
    changed, read = bits[:8], bits[8:]
    control = 8
    for _ in range(16):
        control = (control + 1) % 16
        choices = key_bits[control]
        for index in range(8):
            value = _substituted(read[index], is_swapped=bool(choices[index]))
            mixed = key_bits[control]
            for bit in range(8):
                source = _PERMUTED_FROM[bit]
                target = changed[(_DIFFUSION[bit] + index) % 8]
                target[bit] ^= mixed[source] ^ (value >> source & 1)
            control = (control + 1) % 16
        changed, read = read, changed
    return bytes(
        sum(bit << place for place, bit in enumerate(byte)) for byte in read + changed
    )


def _substituted(byte: Sequence[int], *, is_swapped: bool) -> int:
    """Return a byte with each half replaced; the key decides by which table."""
    low, high = (
        sum(bit << place for place, bit in enumerate(half))
        for half in (byte[4:], byte[:4])
    )
    if is_swapped:
        low, high = high, low
    return _SUBSTITUTES[0][low] + 16 * _SUBSTITUTES[1][high]
