"""Speed of tagging beside transformers' pipeline: texts in, entities out, same weights and sentences.

    python -m benchmarks.ner_speed            # half a minute; 3 on a busy machine
    python -m benchmarks.ner_speed --quick    # smoke test

Sentences are the first ones of WikiGold and of the WNUT-17 test set in `../shared/data`, as they
come. Both sides take turns, so that a busy machine slows both; reported are medians. Ours cuts,
packs, decodes under constraints and puts entities together; theirs is `token-classification` with
batches of 32, which returns a label for each piece. The weights are random (shape 384x6, published
vocabulary), so nearly every word is called an entity: the dearest case for decoding.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import machine
from litebert.checkpoint.folder import save_model
from litebert.data.readers import ReadOptions
from litebert.data.tagged.reader import read_tagged
from litebert.data.tagged.record import TaggedText
from litebert.model.albert import AlbertWithHead
from litebert.model.presets import preset
from litebert.tasks.records import Answer, Feature
from litebert.tasks.tagging import SequenceTagging, make_tagging
from litebert.text.tokenizer import Tokenizer
from litebert.train.evaluate import predict_outputs

RESULTS = Path(__file__).parent / "results" / "tasks-ner-speed.json"
SHARED = Path(__file__).resolve().parents[2] / "shared"
BATCH = 32
TARGET = 2.0
SHAPE = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "intermediate_size": 1536,
    "num_attention_heads": 12,
}


def sentences(count: int) -> list[TaggedText]:
    """Half of the sentences from an encyclopedia, half from the web."""
    found: list[TaggedText] = []
    for name in ("wikigold/wikigold.conll.txt", "wnut17/emerging.test.annotated"):
        source = read_tagged(SHARED / "data" / name, ReadOptions(), True)
        found += source.train.records[: count // 2]
    return found


class Ours:
    """Texts to entities by litebert."""

    def __init__(self, model: AlbertWithHead, task: SequenceTagging, tokenizer: Tokenizer) -> None:
        self.model, self.task, self.tokenizer = model, task, tokenizer

    def __call__(self, records: list[TaggedText]) -> list[Answer]:
        """Entities of each text."""
        features = self.task.features(records, self.tokenizer, labelled=False)
        return self.task.answers(records, features, self.outputs(features))

    def outputs(self, features: list[Feature]) -> list[np.ndarray]:
        """Logits of each window."""
        outputs = predict_outputs(
            self.model, [feature.encoded for feature in features], batch_tokens=2048
        )
        assert outputs is not None
        return list(outputs)


def make_sides(records: list[TaggedText], folder: Path) -> tuple[Ours, Any]:
    """Return both sides with the same weights."""
    import transformers

    tokenizer = Tokenizer.from_pretrained(SHARED / "models" / "albert-english-vocab")
    task = make_tagging(records, {"max_length": 512})
    config = preset(
        "albert-base-v2", vocab_size=tokenizer.vocab_size, id2label=task.config_labels(), **SHAPE
    )
    torch.manual_seed(0)
    model = AlbertWithHead(config, task.head).eval()
    with torch.no_grad():
        for parameter in model.heads.parameters():
            parameter.mul_(20.0)
    save_model(model, folder, tokenizer, task.to_json())
    theirs = transformers.pipeline(
        "token-classification",
        model=transformers.AlbertForTokenClassification.from_pretrained(folder).eval(),
        tokenizer=transformers.AutoTokenizer.from_pretrained(folder),
        device="cpu",
        batch_size=BATCH,
        ignore_labels=[],
    )
    return Ours(model, task, tokenizer), theirs


def check_same(ours: Ours, theirs: Any, records: list[TaggedText]) -> dict[str, int]:
    """Compare the label of the first piece of each word; both answer each word alone."""
    features = ours.task.features(records, ours.tokenizer, labelled=False)
    outputs = ours.outputs(features)
    labels = ours.task.config_labels()
    words = different = 0
    for feature, rows, items in zip(
        features, outputs, theirs([record.text for record in records]), strict=True
    ):
        given = {item["index"]: item["entity"] for item in items}
        for row in feature.details.rows.tolist():
            words += 1
            different += labels[int(rows[row].argmax())] != given[row]
    return {"words": words, "different": different}


def measure(run: Callable[[], Any]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few sentences, nothing is written")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    records = sentences(16 if quick else 64)
    texts = [record.text for record in records]
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = make_sides(records, Path(folder))
        same = check_same(ours, theirs, records)
        rows = [
            (*measure(lambda: ours(records)), *measure(lambda: theirs(texts)))
            for _ in range(2 if quick else 3)
        ]
    wall_ours, cpu_ours, wall_theirs, cpu_theirs = (
        statistics.median(column) for column in zip(*rows, strict=True)
    )
    speedups = [row[3] / row[1] for row in rows]
    result = {
        "machine": before,
        "shape": "384x6",
        "sentences": len(records),
        "pieces": sum(len(ours.tokenizer.encode(text)) for text in texts),
        "rounds": len(rows),
        "predictions": same,
        "ours_cpu_seconds": cpu_ours,
        "theirs_cpu_seconds": cpu_theirs,
        "ours_wall_seconds": wall_ours,
        "theirs_wall_seconds": wall_theirs,
        "speedup": statistics.median(speedups),
        "speedup_range": [min(speedups), max(speedups)],
        "wall_speedup": statistics.median(row[2] / row[0] for row in rows),
        "target": TARGET,
    }
    print(json.dumps(result, indent=1))
    if not quick:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
