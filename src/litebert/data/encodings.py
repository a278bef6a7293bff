"""Bytes to text: told encodings, byte-order marks, and a detector that refuses to guess wildly."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from litebert.errors import DataError, SettingsError

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ESCAPED = re.compile("[\udc80-\udcff]")
_NON_ASCII = re.compile("[^\x00-\x7f]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")
_SURROGATE_BYTES = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_MAX_CONTROL_FRACTION = 0.01
_MAX_STRAY_CONTROLS = 3
_MAX_WESTERN_FRACTION = 0.25
"""Western European text in a one-byte encoding has fewer accented letters than this."""
_SAMPLE_BYTES = 1 << 16


def decode_text(data: bytes, encoding: str | None, path: Path) -> tuple[str, str]:
    """Return the text of a file and the name of the encoding that was used.

    A file that is mostly UTF-8 keeps its bad bytes as escaped surrogates (U+DC80..U+DCFF), so
    that the row reader can blame the exact row. Leading byte-order marks are removed.

    Args:
        data: the whole file.
        encoding: a Python codec name, or None to detect.
        path: file to name in errors.

    Raises:
        DataError: bytes that are not in the told encoding, binary data, or an encoding that
            cannot be told apart.
        SettingsError: no such encoding.
    """
    if encoding is not None:
        return _decode_told(data, encoding, path)
    name = detect_encoding(data, path)
    text = data.decode(name, errors="surrogateescape" if name == "utf-8" else "strict")
    return text.lstrip("\ufeff"), name


def detect_encoding(data: bytes, path: Path) -> str:
    """Name the encoding: utf-8, utf-16/32 (LE, BE), cp1252 or latin-1.

    Raises:
        DataError: binary data, broken UTF-16, or a non-Western encoding without a mark.
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            _check_decodes(data, name, path)
            return name
    wide = _wide_encoding(data)
    if wide is not None:
        return wide
    if _decodes(data, "utf-8"):
        _refuse_binary(data.decode("utf-8"), path)
        return "utf-8"
    body = data.removeprefix(codecs.BOM_UTF8)
    text = body.decode("utf-8", errors="surrogateescape")
    bad = len(_ESCAPED.findall(text))
    good = len(_NON_ASCII.findall(text)) - bad
    surrogate_bytes = 3 * len(_SURROGATE_BYTES.findall(body))
    if good > bad or surrogate_bytes == bad:
        return "utf-8"
    return _one_byte_encoding(body, path)


def _one_byte_encoding(body: bytes, path: Path) -> str:
    name = "cp1252" if _decodes(body, "cp1252") else "latin-1"
    text = body.decode(name)
    _refuse_binary(text, path, allow_nul=False)
    high = len(_NON_ASCII.findall(text)) / len(text)
    if high > _MAX_WESTERN_FRACTION:
        raise DataError(
            f"the file is neither UTF-8, UTF-16 nor Western text ({high:.0%} of its bytes are not "
            "ASCII); tell its encoding, for example --encoding shift_jis or --encoding cp1251",
            path=path,
        )
    return name


def _wide_encoding(data: bytes) -> str | None:
    """Recognise UTF-16 without a mark by zero bytes that sit at one parity only."""
    sample = data[: _SAMPLE_BYTES & ~1]
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    most = max(even, odd)
    if half == 0 or len(data) % 2 or most < 0.9 * (even + odd) or most == 0:
        return None
    name = "utf-16-le" if odd >= even else "utf-16-be"
    is_latin = most >= 0.5 * half
    is_other = most >= 2 and not _is_plain_utf_8(sample)
    if not (is_latin or is_other) or not _decodes(data, name):
        return None
    text = sample.decode(name, errors="ignore")
    return None if len(_CONTROLS.findall(text)) > _MAX_CONTROL_FRACTION * len(text) else name


def _is_plain_utf_8(sample: bytes) -> bool:
    text = sample.decode("utf-8", errors="surrogateescape")
    odd = len(_ESCAPED.findall(text)) + len(_CONTROLS.findall(text)) - text.count("\x00")
    return odd <= _MAX_STRAY_CONTROLS


def _refuse_binary(text: str, path: Path, *, allow_nul: bool = True) -> None:
    controls = _CONTROLS.findall(text)
    if len(controls) > max(_MAX_STRAY_CONTROLS, _MAX_CONTROL_FRACTION * len(text)) or (
        not allow_nul and "\x00" in controls
    ):
        raise DataError(
            f"the file looks binary ({len(controls):,} control characters); "
            "allowed: CSV, TSV, JSON, JSON lines, Parquet",
            path=path,
        )


def _decode_told(data: bytes, encoding: str, path: Path) -> tuple[str, str]:
    try:
        name = codecs.lookup(encoding).name
        if name in ("utf-8", "utf-8-sig"):
            return data.decode("utf-8", errors="surrogateescape").lstrip("\ufeff"), "utf-8"
        return data.decode(name).lstrip("\ufeff"), name
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"byte 0x{data[error.start]:02X} is not {encoding}; tell another encoding or leave "
            "it out to have it detected",
            path=path,
            line=line,
        ) from error
    except (LookupError, ValueError) as error:
        raise SettingsError(
            f"encoding {encoding!r} cannot be used ({error}); known ones are "
            "utf-8, utf-16, latin-1, cp1252 and Python's other text codecs"
        ) from error


def _check_decodes(data: bytes, name: str, path: Path) -> None:
    try:
        data.decode(name)
    except UnicodeDecodeError as error:
        raise DataError(
            f"the byte-order mark says {name}, but byte {error.start:,} is not ({error.reason}); "
            "the file is cut short or was joined from parts",
            path=path,
        ) from error


def _decodes(data: bytes, name: str) -> bool:
    try:
        data.decode(name)
    except UnicodeDecodeError:
        return False
    return True
