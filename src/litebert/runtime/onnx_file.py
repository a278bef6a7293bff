"""An ONNX file that may be hostile: read, checked field by field, and only then given to others.

What is not known is refused. A file that passes names no other file, brings no code, declares no
stored tensor larger than the bytes it holds, and is one graph of known operators. Differs from
`onnx.checker`: needs no onnx package, copies nothing, and allows less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Final

from litebert.errors import CheckpointError
from litebert.files import read_bytes
from litebert.runtime.onnx_fields import (
    ELEMENT_BITS,
    FUSED_OPERATORS,
    MESSAGES,
    PACKED,
    REFUSED,
    REPEATED,
    STANDARD_DOMAINS,
    TYPED_DATA,
)
from litebert.runtime.wire import RANGE, VARINT, WireError, fields, packed_count, varints

__all__ = ["MAX_BYTES", "OnnxFile", "parse_onnx", "read_onnx"]

MAX_BYTES: Final = (1 << 31) - 1
"""Protobuf itself holds no more."""
MAX_FIELDS: Final = 1_000_000
"""A graph of 24 unrolled depths has some ten thousand."""
MAX_NESTING: Final = 8
"""Graphs inside graphs."""
MAX_TEXT: Final = 1_000_000
"""Bytes of one name or note."""
MAX_DIMENSIONS: Final = 8
MAX_METADATA: Final = 256
"""Entries that the maker of a file wrote beside the graph."""
OPSETS: Final = range(13, 27)
FORMATS: Final = range(3, 21)
FUSED_DOMAIN: Final = "com.microsoft"
_RAW: Final = 9

Range = tuple[int, int]
Found = Mapping[int, tuple[int, Range]]
"""Field number -> number, or where its bytes lie."""


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """An ONNX file that was found harmless.

    Attributes:
        data: its bytes.
        sha256: their digest, hex.
        metadata: what its maker wrote beside the graph.
        operators: kinds of operators that occur.
    """

    data: bytes = field(repr=False)
    sha256: str
    metadata: dict[str, str]
    operators: frozenset[str]


def read_onnx(path: Path, *, sha256: str | None = None, max_bytes: int = MAX_BYTES) -> OnnxFile:
    """Read and check a file.

    Args:
        path: the file.
        sha256: digest that it must have, hex; None: any.
        max_bytes: largest size.

    Raises:
        CheckpointError: missing, too large, of another digest, damaged, or not allowed.
    """
    data = read_bytes(path, max_bytes=min(max_bytes, MAX_BYTES))
    digest = hashlib.sha256(data).hexdigest()
    if sha256 is not None and digest != sha256.lower():
        raise CheckpointError(
            f"has the sha256 {digest}, expected {sha256:.80}: it was changed or is damaged; export "
            "the model again",
            path=path,
        )
    return parse_onnx(data, path, digest=digest)


def parse_onnx(data: bytes, path: Path | None = None, *, digest: str | None = None) -> OnnxFile:
    """Check the bytes of a file.

    Args:
        data: the bytes.
        path: where they are from, for messages.
        digest: their sha256, where it is known already.

    Raises:
        CheckpointError: damaged, or not allowed.
    """
    if data[4:8] == b"ORTM":
        raise CheckpointError(
            "is in the own format of onnxruntime, which cannot be checked; give the .onnx file",
            path=path,
        )
    reader = _Reader(memoryview(data))
    try:
        reader.message("model", 0, len(data), 0)
        reader.finish()
    except (WireError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"not an ONNX file that is safe to use: {error}; export the model again", path=path
        ) from error
    digest = digest or hashlib.sha256(data).hexdigest()
    return OnnxFile(data, digest, reader.metadata, frozenset(reader.operators))


class _Reader:
    """Goes through a file once; time is linear, and little is kept."""

    def __init__(self, data: memoryview) -> None:
        self.metadata: dict[str, str] = {}
        self.operators: set[str] = set()
        self._data = data
        self._fields = 0
        self._has_graph = False
        self._opsets: dict[str, int] = {}

    def finish(self) -> None:
        """Check what the model as a whole must have."""
        if not self._has_graph:
            raise WireError("it holds no graph")
        versions = [self._opsets[name] for name in STANDARD_DOMAINS if name in self._opsets]
        if len(versions) != 1 or versions[0] not in OPSETS:
            raise WireError(
                f"its operators are of version {versions}, allowed: {OPSETS[0]} to {OPSETS[-1]}"
            )

    def message(self, name: str, start: int, end: int, nesting: int) -> None:
        """Check a message and all that it holds."""
        known, repeated = MESSAGES[name], REPEATED.get(name, ())
        found: dict[int, tuple[int, Range]] = {}
        dims: list[int] = []
        for number, kind, value, where in fields(self._data, start, end):
            self._fields += 1
            if self._fields > MAX_FIELDS:
                raise WireError(f"it holds more than {MAX_FIELDS:,} fields")
            if (name, number) in REFUSED:
                raise WireError(f"it holds {REFUSED[name, number]}")
            if number not in known:
                raise WireError(f"a {name} has the unknown field {number}")
            expected, what = known[number]
            if kind != expected and not (kind == RANGE and (name, number) in PACKED):
                raise WireError(f"field {number} of a {name} has wire type {kind}")
            if number in found and number not in repeated:
                raise WireError(f"a {name} has the field {number} twice")
            found[number] = value, where
            if what == "text" and where[1] - where[0] > MAX_TEXT:
                raise WireError(f"a text of {where[1] - where[0]:,} bytes")
            if (name, number) == ("tensor", 1):
                dims += [value] if kind == VARINT else self._dims(where)
                if len(dims) > MAX_DIMENSIONS:
                    raise WireError(f"a tensor of more than {MAX_DIMENSIONS} dimensions")
            elif what in MESSAGES:
                inside = nesting + (what == "graph")
                if inside > MAX_NESTING:
                    raise WireError(f"more than {MAX_NESTING} graphs inside each other")
                self.message(what, *where, inside)
                if name == "model" and what == "entry":
                    self._keep_metadata(where)
        if name == "tensor":
            self._check_tensor(found, dims)
        elif name in ("node", "opset", "model"):
            getattr(self, f"_check_{name}")(found)

    def _text(self, found: Found, number: int) -> str:
        start, end = found.get(number, (0, (0, 0)))[1]
        return str(self._data[start:end], "utf-8")

    def _dims(self, where: Range) -> list[int]:
        if where[1] - where[0] > 10 * MAX_DIMENSIONS:
            raise WireError(f"a tensor of more than {MAX_DIMENSIONS} dimensions")
        return varints(self._data, *where)

    def _keep_metadata(self, where: Range) -> None:
        entry = {number: (0, place) for number, _, _, place in fields(self._data, *where)}
        key, value = self._text(entry, 1), self._text(entry, 2)
        if key in self.metadata or len(self.metadata) >= MAX_METADATA:
            raise WireError(f"the note {key!r:.60} is there twice, or there are too many")
        self.metadata[key] = value

    def _check_model(self, found: Found) -> None:
        self._has_graph = 7 in found
        version = found.get(1, (0, (0, 0)))[0]
        if version not in FORMATS:
            raise WireError(f"it is of version {version}, allowed: {FORMATS[0]} to {FORMATS[-1]}")

    def _check_opset(self, found: Found) -> None:
        domain = self._text(found, 1)
        if domain not in (*STANDARD_DOMAINS, FUSED_DOMAIN):
            raise WireError(f"it uses operators of the domain {domain!r:.60}")
        if domain in self._opsets:
            raise WireError(f"it has two versions of the domain {domain!r}")
        self._opsets[domain] = found.get(2, (0, (0, 0)))[0]

    def _check_node(self, found: Found) -> None:
        domain, operator = self._text(found, 7), self._text(found, 4)
        is_fused = domain == FUSED_DOMAIN and operator in FUSED_OPERATORS
        if domain not in STANDARD_DOMAINS and not is_fused:
            raise WireError(f"it uses the operator {operator!r:.60} of the domain {domain!r:.60}")
        self.operators.add(operator)

    def _check_tensor(self, found: Found, dims: list[int]) -> None:
        """A tensor's elements must be there, as many as it declares."""
        kind = found.get(2, (0, (0, 0)))[0]
        if kind not in ELEMENT_BITS:
            raise WireError(f"a tensor of number type {kind}")
        if found.get(14, (0, (0, 0)))[0]:
            raise WireError(f"it holds {REFUSED['tensor', 13]}")
        if any(size > MAX_BYTES for size in dims):
            raise WireError(f"a tensor of the shape {dims}")
        elements = prod(dims)
        holders = [number for number in (_RAW, *TYPED_DATA) if number in found]
        if len(holders) > 1:
            raise WireError("a tensor has its data twice")
        if not holders:
            held, wanted = 0, elements
        elif holders[0] == _RAW:
            start, end = found[_RAW][1]
            held, wanted = end - start, (elements * ELEMENT_BITS[kind] + 7) // 8
        else:
            held, wanted = self._typed(holders[0], kind, found[holders[0]][1]), elements
        if held != wanted:
            raise WireError(f"a tensor of the shape {dims} has {held:,} of {wanted:,} parts")

    def _typed(self, number: int, kind: int, where: Range) -> int:
        """Elements that are stored one by one."""
        size, kinds = TYPED_DATA[number]
        if kind not in kinds:
            raise WireError(f"a tensor of number type {kind} has its data in field {number}")
        return (where[1] - where[0]) // size if size else packed_count(self._data, *where)
