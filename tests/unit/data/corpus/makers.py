"""Small archives and compressed data for tests of reading corpora."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping

import pyarrow as pa


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd,
}  # fmt: skip


def tar_of(members: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    """A tar archive; a TarInfo stands for a member without content, such as a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            if isinstance(data, tarfile.TarInfo):
                archive.addfile(data)
                continue
            item = tarfile.TarInfo(name)
            item.size = len(data)
            archive.addfile(item, io.BytesIO(data))
    return buffer.getvalue()


def zip_of(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()
