"""Shards: token ids of clean text on disk, memory-mapped, with word starts and sentence bounds."""

from litebert.data.shards.format import FORMAT_VERSION, ShardInfo, dtype_for
from litebert.data.shards.manifest import Manifest, read_manifest, write_manifest
from litebert.data.shards.reader import Shard, ShardSet
from litebert.data.shards.writer import ShardWriter

__all__ = [
    "FORMAT_VERSION",
    "Manifest",
    "Shard",
    "ShardInfo",
    "ShardSet",
    "ShardWriter",
    "dtype_for",
    "read_manifest",
    "write_manifest",
]
