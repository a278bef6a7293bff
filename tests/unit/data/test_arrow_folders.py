from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from litebert.data.examples import make_examples
from litebert.data.sources import load_source
from litebert.errors import DataError

FEATURES = {
    "text": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["calm", "cross"], "_type": "ClassLabel"},
}


def save(folder: Path, rows: list[dict[str, object]], *, as_file: bool = False) -> None:
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    path = folder / "data-00000-of-00001.arrow"
    new = pa.ipc.new_file if as_file else pa.ipc.new_stream
    with new(str(path), table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text("{}")
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))


ROWS: list[dict[str, object]] = [
    {"text": "all is well", "label": 0},
    {"text": "it broke again", "label": 1},
    {"text": "fine by me", "label": 0},
]


@pytest.mark.parametrize("as_file", [False, True])
def test_saved_splits(tmp_path: Path, as_file: bool) -> None:
    (tmp_path / "dataset_dict.json").write_text("{}")
    save(tmp_path / "train", ROWS, as_file=as_file)
    save(tmp_path / "validation", ROWS[:1], as_file=as_file)
    save(tmp_path / "test", [{"text": "who knows", "label": -1}], as_file=as_file)
    source = load_source(tmp_path)
    assert [len(table) for table in source.tables()] == [3, 1, 1]
    schema = source.schema()
    assert schema.labels == ("calm", "cross")
    assert [e.label for e in make_examples(source.train, schema)] == ["calm", "cross", "calm"]
    assert source.test is not None and source.test.rows[0].values["label"] is None
    assert len(load_source(tmp_path / "train").train) == 3


def test_faults(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text("{}")
    save(tmp_path / "other", ROWS)
    with pytest.raises(DataError, match=r"no split named train \(splits: other\)"):
        load_source(tmp_path)
    folder = tmp_path / "other"
    shard = folder / "data-00000-of-00001.arrow"
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="damaged"):
        load_source(folder)
    shard.unlink()
    with pytest.raises(DataError, match="no usable rows"):
        load_source(folder)
    save(tmp_path / "nul", [*ROWS, {"text": "nul \x00", "label": 1}])
    with pytest.raises(DataError, match="NUL") as caught:
        load_source(tmp_path / "nul")
    assert caught.value.line == 4
    assert len(load_source(tmp_path / "nul", on_bad_row="skip").train.skipped) == 1


def test_the_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "train", ROWS)
    monkeypatch.setattr("litebert.data.arrow_folders.MAX_BYTES", 10)
    with pytest.raises(DataError, match="more than 10 bytes"):
        load_source(tmp_path / "train")
