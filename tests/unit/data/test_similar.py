"""Files of texts to compare: columns found, records made, bad records blamed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from litebert.data.readers import ReadOptions
from litebert.data.records import split_records
from litebert.data.similar import read_named_pairs, read_similar, similar_columns
from litebert.data.tables import read_table
from litebert.errors import DataError

PLAIN = ReadOptions()
SKIP = ReadOptions(on_bad_row="skip")


def written(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "header",
    [
        "sentence1,sentence2,score",
        "Sentence_A,sentence_B,relatedness_score",
        "text1,text2,similarity",
        "question1,question2,is_duplicate",
    ],
)
def test_scored_pairs_are_found_by_their_column_names(tmp_path: Path, header: str) -> None:
    path = written(tmp_path, "a.csv", f"{header}\na kettle,the kettle,1\na lamp,a boat,0\n")
    records = read_similar(path, PLAIN, True).train.records
    assert [(r.texts, r.score, r.line) for r in records] == [
        (("a kettle", "the kettle"), 1.0, 2),
        (("a lamp", "a boat"), 0.0, 3),
    ]
    assert records[0].group == "a kettle" and records[0].path == path


def test_anchors_have_one_record_for_each_positive_and_share_their_negatives(
    tmp_path: Path,
) -> None:
    rows = [
        {"query": "warm drink", "pos": ["tea", "cocoa"], "neg": ["ice", "  "]},
        {"query": "cold drink", "pos": ["lemonade"], "neg": None},
    ]
    path = written(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    records = read_similar(path, PLAIN, True).train.records
    assert [record.texts for record in records] == [
        ("warm drink", "tea", "ice"),
        ("warm drink", "cocoa", "ice"),
        ("cold drink", "lemonade"),
    ]
    assert [record.id for record in records] == ["1-1", "1-2", "2"]
    assert records[0].negatives == ("ice",) and records[2].negatives == ()
    assert all(record.score is None for record in records)


def test_numbered_negatives_of_a_table_are_all_taken(tmp_path: Path) -> None:
    text = "anchor\tpositive\tnegative_1\tnegative_2\nfox\tvixen\tbus\ttram\nox\tcow\t\tcar\n"
    records = read_similar(written(tmp_path, "a.tsv", text), PLAIN, True).train.records
    assert [record.texts for record in records] == [
        ("fox", "vixen", "bus", "tram"),
        ("ox", "cow", "car"),
    ]


def test_two_bare_columns_belong_together_and_a_third_of_numbers_is_the_score(
    tmp_path: Path,
) -> None:
    told = ReadOptions(header=False)
    two = written(tmp_path, "a.tsv", "the red fox ran\tthe fox\nan ox stood\tthe ox\n")
    assert read_similar(two, told, True).train.records[0].texts == ("the red fox ran", "the fox")
    three = written(tmp_path, "b.tsv", "a fox ran\tthe fox\t4.5\nan ox stood\tthe ox\t1\n")
    assert [r.score for r in read_similar(three, told, True).train.records] == [4.5, 1.0]
    other = written(tmp_path, "c.tsv", "a fox ran\tthe fox\tbus\nan ox stood\tthe ox\t1\n")
    assert read_similar(other, told, True).train.records[0].negatives == ("bus",)


def test_parquet_and_a_folder_with_splits_are_read(tmp_path: Path) -> None:
    for name, score in (("train", 0.5), ("dev", 0.25)):
        table = pa.table({"sentence1": ["a fox"], "sentence2": ["the fox"], "score": [score]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    pq.write_table(pa.table({"sentence1": ["a"], "sentence2": ["b"]}), tmp_path / "test.parquet")
    source = read_similar(tmp_path, PLAIN, True)
    assert source.train.records[0].score == 0.5
    assert source.eval is not None and source.eval.records[0].score == 0.25
    assert source.test is None and any("no scores" in note for note in source.notes)
    unlabelled = read_similar(tmp_path / "test.parquet", PLAIN, False)
    assert unlabelled.train.records[0].texts == ("a", "b")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("fox,,1", "no second text"),
        (",fox,1", "text is empty"),
        ("fox,ox,", "a similarity is a finite number"),
        ("fox,ox,high", "a similarity is a finite number"),
        ("fox,ox,nan", "a similarity is a finite number"),
        ("fox,ox,1e999", "a similarity is a finite number"),
    ],
)
def test_a_bad_record_is_blamed_or_skipped_and_counted(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = written(tmp_path, "a.csv", f"sentence1,sentence2,score\na,b,0.5\n{line}\n")
    with pytest.raises(DataError, match=reason) as caught:
        read_similar(path, PLAIN, True)
    assert caught.value.line == 3 and caught.value.path == path and caught.value.column
    split = read_similar(path, SKIP, True).train
    assert len(split.records) == 1
    assert [(row.line, reason in row.reason) for row in split.skipped] == [(3, True)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"query": ["a", "b"], "pos": ["c"]}, "a list of 2 values"),
        ({"query": {"a": 1}, "pos": ["c"]}, "expected a text"),
        ({"query": "a", "pos": [["c"]]}, "expected a text"),
        ({"query": "a", "pos": [True]}, "expected a text"),
        ({"query": "a", "pos": ["c"], "neg": ["c"]}, "the positive and a negative too"),
        ({"query": "a", "pos": []}, "no second text"),
        ({"query": None, "pos": ["c"]}, "text is empty"),
        ({"query": "a\ud800", "pos": ["c"]}, "surrogate"),
        ({"query": "a\x00", "pos": ["c"]}, "NUL"),
    ],
)
def test_hostile_json_records_are_located(tmp_path: Path, row: object, reason: str) -> None:
    good = {"query": "x", "pos": ["y"], "neg": ["z"]}
    path = written(tmp_path, "a.jsonl", json.dumps(good) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(DataError, match=reason) as caught:
        read_similar(path, PLAIN, True)
    assert caught.value.line == 2
    assert len(read_similar(path, SKIP, True).train.records) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xef\xbb\xbf", b"{", b'{"query": "a', b"[" * 5000, b"\xff\xfe\x00\x00",
        b"one column\nonly\n", b"PAR1 no parquet", b"sentence1,sentence2,score\n",
    ],
)  # fmt: skip
def test_a_file_that_is_no_such_table_is_an_error_of_data(tmp_path: Path, content: bytes) -> None:
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        with pytest.raises(DataError):
            read_similar(written(tmp_path, name, content), PLAIN, True)


def test_marks_line_ends_and_encodings_do_not_matter(tmp_path: Path) -> None:
    text = "sentence1,sentence2,score\r\ncafé,thé,1\r\n"
    for name, data in (
        ("a.csv", b"\xef\xbb\xbf" + text.encode()),
        ("b.csv", text.encode("latin-1")),
    ):
        records = read_similar(written(tmp_path, name, data), PLAIN, True).train.records
        assert records[0].texts == ("café", "thé")


def test_wrong_paths_columns_and_files_without_scores_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_similar(tmp_path / "none.csv", PLAIN, True)
    with pytest.raises(DataError, match="no such file"):
        read_named_pairs(tmp_path / "none.tsv", PLAIN, True, name="glue/stsb")
    odd = written(tmp_path, "odd.csv", "colour,size,weight\nred,big,heavy stone\n")
    with pytest.raises(DataError, match="expected sentence1, sentence2"):
        similar_columns(read_table(odd))
    glue = written(tmp_path, "s.tsv", "index\tsentence1\tsentence2\n0\ta fox\tthe fox\n")
    with pytest.raises(DataError, match="no column 'score'"):
        read_named_pairs(glue, PLAIN, True, name="glue/stsb")
    assert len(read_named_pairs(glue, PLAIN, False, name="glue/stsb").train.records) == 1
    single = written(tmp_path, "cola.tsv", "index\tsentence\tlabel\n0\ta fox\t1\n1\tan ox\t0\n")
    with pytest.raises(DataError, match="no pairs of texts"):
        read_named_pairs(single, PLAIN, True, name="glue/cola")
    (tmp_path / "parts").mkdir()
    written(tmp_path / "parts", "train.csv", "sentence1,sentence2,score\na,b,1\nc,d,0\n")
    written(tmp_path / "parts", "dev.csv", "text1,text2,score\na,b,1\nc,d,0\n")
    with pytest.raises(DataError, match="no column 'sentence1'"):
        read_similar(tmp_path / "parts", PLAIN, True)
    empty = written(tmp_path, "e.csv", "sentence1,sentence2,score\na,,1\nb,,0\n")
    with pytest.raises(DataError, match="no usable record; the first"):
        read_similar(empty, SKIP, True)


def test_glue_quirks_quotes_are_ordinary_characters(tmp_path: Path) -> None:
    head = (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    )
    row = '7\tnews\tx\t2013\t1\tnone\tnone\t"Yes, he said.\tHe said "yes"\t3.5\n'
    path = written(tmp_path, "train.tsv", head + row)
    (record,) = read_named_pairs(path, PLAIN, True, name="glue/stsb").train.records
    assert record.texts == ('"Yes, he said.', 'He said "yes"') and record.score == 3.5
    assert record.id == "7"


def test_records_of_one_anchor_are_never_split(tmp_path: Path) -> None:
    rows = [f"anchor {i % 7},text {i}\n" for i in range(40)]
    path = written(tmp_path, "a.csv", "anchor,positive\n" + "".join(rows))
    train, evaluation = split_records(read_similar(path, PLAIN, True).train.records, 0.3, 0)
    assert not {r.anchor for r in train} & {r.anchor for r in evaluation}


@pytest.mark.parametrize(
    ("name", "folder", "counts"),
    [
        ("glue/stsb", "glue/STS-B", (5749, 1500, 0)),
        ("sick/relatedness", "sick", (4500, 500, 4927)),
        ("jglue/jsts", "jglue/jsts-v1.3", (12451, 1457, 0)),
    ],
)
def test_public_sets_have_their_published_sizes(
    shared: Path, name: str, folder: str, counts: tuple[int, int, int]
) -> None:
    source = read_named_pairs(shared / "data" / folder, PLAIN, True, name=name)
    parts = (source.train, source.eval, source.test)
    assert tuple(0 if part is None else len(part.records) for part in parts) == counts
    scores = [record.score for part in parts if part for record in part.records]
    assert all(score is not None and 0 <= score <= 5 for score in scores)
