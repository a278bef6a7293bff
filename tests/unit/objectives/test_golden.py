"""The first 1,000 batches, remembered: corruption must not change from version to version."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from litebert.data.chunks import ChunkIndex
from litebert.objectives.base import SpecialIds
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.examples import ExampleMaker, collate_examples
from litebert.settings import build_settings

BATCHES = 1000
EXAMPLES = 4
VOCABULARY = 997
GOLDEN = "tests/golden/pretraining-batches.json"
CASES: dict[str, dict[str, Any]] = {
    "sop": {},
    "nsp": {"order": "nsp"},
    "google": {
        "mlm": {"google_compatible": True},
        "order": {"kind": "sop", "google_compatible": True},
    },
    "linear": {"mlm": {"mask_fraction": 0.3, "schedule": "linear", "end_fraction": 0.15}},
}


def arithmetic_shards() -> Any:
    """Shards by arithmetic alone: 90 documents whose tokens, words and bounds are residues."""
    shards = []
    for shard in range(3):
        sizes = [3 + (7 * i * i + 5 * i + shard) % 29 for i in range(300)]
        total = sum(sizes)
        place = np.arange(total)
        flags = (place * place + shard) % 7 < 4
        ends = [0]
        while ends[-1] < 300:
            ends.append(min(300, ends[-1] + 1 + (ends[-1] * 3 + shard) % 19))
        shards.append(
            SimpleNamespace(
                ids=(5 + (place * 31 + place // 11 * 17 + shard) % (VOCABULARY - 5)).astype("u2"),
                sentences=np.cumsum([0, *sizes]).astype(np.uint32),
                documents=np.asarray(ends, np.uint32),
                word_starts=lambda a, b, flags=flags: flags[a:b],
            )
        )
    return SimpleNamespace(shards=tuple(shards), fingerprint="arithmetic")


def digest(case: str) -> str:
    index = ChunkIndex.build(arithmetic_shards(), max_tokens=125)
    settings = build_settings(ObjectiveSettings, CASES[case])
    maker = ExampleMaker(index, settings, SpecialIds(2, 3, 4, 0, VOCABULARY), seed=20)
    total = hashlib.sha256()
    for number in range(BATCHES):
        samples = range(number * EXAMPLES, (number + 1) * EXAMPLES)
        where = [divmod(sample, len(index)) for sample in samples]
        batch = collate_examples([maker.make(*place, number / BATCHES) for place in where])
        for part in (batch.input_ids, batch.token_type_ids, batch.labels, batch.cu_seqlens):
            total.update(np.ascontiguousarray(part).astype("<i8").tobytes())
        order = [] if batch.order_labels is None else batch.order_labels.tolist()
        total.update(repr((order, batch.example_index.tolist())).encode())
    return total.hexdigest()


@pytest.mark.parametrize("case", CASES)
def test_the_first_thousand_batches(repository, case):
    remembered = json.loads((repository / GOLDEN).read_text())
    assert digest(case) == remembered[case], (
        "examples differ from those of earlier versions: runs cannot be resumed nor repeated. "
        "If that is meant, say so in the change log and write the new hashes"
    )
