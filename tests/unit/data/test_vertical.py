from __future__ import annotations

from pathlib import Path

import numpy as np

from litebert.data.batch import EncodedExample, batch_order, collate
from litebert.data.examples import make_examples
from litebert.data.schema import infer_schema
from litebert.data.split import split_examples
from litebert.data.tables import read_table


def test_a_csv_becomes_packed_batches(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    lines = [f'"text number {i},\nsecond line",{"good" if i % 3 else "bad"}' for i in range(30)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(path)
    assert [row.line for row in table.rows] == list(range(2, 62, 2))
    schema = infer_schema(table)
    assert (schema.kind, schema.labels, schema.text_columns) == (
        "binary",
        ("bad", "good"),
        ("text",),
    )
    examples = make_examples(table, schema)
    train, evaluation = split_examples(examples, 0.2, seed=1)
    assert (len(train), len(evaluation)) == (24, 6)
    assert (
        sorted(e.label for e in evaluation if isinstance(e.label, str))
        == ["bad"] * 2 + ["good"] * 4
    )
    encoded = [
        EncodedExample(
            np.arange(1, 3 + i % 5, dtype=np.int32),
            np.zeros(2 + i % 5, np.int8),
            schema.labels.index(str(example.label)),
            i,
        )
        for i, example in enumerate(train)
    ]
    order = batch_order([len(e) for e in encoded], batch_size=5, seed=0, epoch=0)
    seen = []
    for indices in order:
        batch = collate([encoded[i] for i in indices])
        assert batch.num_sequences == len(indices) and batch.labels is not None
        seen += batch.example_index.tolist()
    assert sorted(seen) == list(range(24))
