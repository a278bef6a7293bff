"""Real public files: the row counts that their manifest states."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path

import pytest

from litebert.data.examples import make_examples
from litebert.data.readers import Source
from litebert.data.sources import load_source
from litebert.data.tables import Table

GLUE_ROWS = {
    # task: (folder, train, dev, test)
    "cola": ("CoLA", 8551, 1043, 1063),
    "sst2": ("SST-2", 67349, 872, 1821),
    "mrpc": ("MRPC", 3668, 408, 1725),
    "rte": ("RTE", 2490, 277, 3000),
    "stsb": ("STS-B", 5749, 1500, 1379),
    "wnli": ("WNLI", 635, 71, 146),
}
GLUE_COUNTS = {
    "cola": ({"1": 6023, "0": 2528}, {"1": 721, "0": 322}),
    "sst2": ({"1": 37569, "0": 29780}, {"1": 444, "0": 428}),
    "mrpc": ({"1": 2474, "0": 1194}, {"1": 279, "0": 129}),
    "rte": (
        {"entailment": 1249, "not_entailment": 1241},
        {"entailment": 146, "not_entailment": 131},
    ),
    "wnli": ({"0": 323, "1": 312}, {"0": 40, "1": 31}),
}


def sizes(source: Source) -> tuple[int, int, int]:
    return tuple(len(t) if t else 0 for t in (source.train, source.eval, source.test))  # type: ignore[return-value]


def class_counts(source: Source, table: Table) -> dict[str, int]:
    return dict(Counter(str(e.label) for e in make_examples(table, source.schema())))


@pytest.mark.parametrize("task", GLUE_ROWS)
def test_glue_folders(shared: Path, task: str) -> None:
    folder, *rows = GLUE_ROWS[task]
    source = load_source(shared / "data" / "glue" / folder, f"glue/{task}")
    assert sizes(source) == tuple(rows)
    assert not any(table.skipped for table in source.tables())
    schema = source.schema()
    assert source.eval is not None
    if task in GLUE_COUNTS:
        assert class_counts(source, source.train) == GLUE_COUNTS[task][0]
        assert class_counts(source, source.eval) == GLUE_COUNTS[task][1]
    else:
        assert len(make_examples(source.train, schema)) == rows[0]
    assert source.test is not None
    assert len(make_examples(source.test, schema, labelled=False)) == rows[2]


def test_glue_kinds_and_metrics(shared: Path) -> None:
    found = {}
    for task in ("cola", "stsb", "mrpc", "rte"):
        schema = load_source(shared / "data" / "glue", f"glue/{task}").schema()
        found[task] = (schema.kind, schema.metric, schema.text_columns)
    assert found == {
        "cola": ("binary", "matthews", ("sentence",)),
        "stsb": ("regression", "pearson_spearman", ("sentence1", "sentence2")),
        "mrpc": ("binary", "f1", ("#1 String", "#2 String")),
        "rte": ("binary", "accuracy", ("sentence1", "sentence2")),
    }


def test_glue_single_files(shared: Path) -> None:
    qnli = load_source(shared / "data/glue/QNLI/dev.tsv", "glue/qnli")
    assert class_counts(qnli, qnli.train) == {"entailment": 2702, "not_entailment": 2761}
    assert len(load_source(shared / "data/glue/QNLI/test.tsv", "glue/qnli").train) == 5463
    ax = load_source(shared / "data/glue/AX", "glue/ax")
    assert len(ax.train) == 1104 and not ax.is_labelled


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("MNLI", None),
        ("QQP", {"0": 8999 - 3252, "1": 3252}),
        ("QNLI", {"entailment": 4523, "not_entailment": 4476}),
        ("SNLI", None),
    ],
)
def test_glue_subsets_are_found_in_their_folder(
    shared: Path, name: str, counts: dict[str, int] | None
) -> None:
    source = load_source(shared / "data/glue_subsets" / name)
    assert sizes(source) == (8999, 1000, 0)
    schema = source.schema()
    assert schema.text_columns == ("text_a", "text_b")
    assert len(schema.labels) == (3 if name.endswith("NLI") and name != "QNLI" else 2)
    if counts:
        assert class_counts(source, source.train) == counts


def test_clinc150(shared: Path) -> None:
    folder = shared / "data/clinc150"
    source = load_source(folder, "clinc150")
    assert sizes(source) == (15100, 3100, 5500)
    assert len(source.schema().labels) == 151
    assert sizes(load_source(folder, "clinc150/in_scope")) == (15000, 3000, 4500)
    assert sizes(load_source(folder / "data_small.json", "clinc150")) == (7600, 3100, 5500)
    assert sizes(load_source(folder / "data_imbalanced.json", "clinc150")) == (10625, 3100, 5500)


def test_banking77_needs_no_task_name(shared: Path) -> None:
    source = load_source(shared / "data/banking77")
    assert sizes(source) == (10003, 0, 3080)
    schema = source.schema()
    assert (len(schema.labels), schema.text_columns, schema.label_column) == (
        77,
        ("text",),
        "category",
    )


def test_ag_news(shared: Path) -> None:
    source = load_source(shared / "data/ag_news", "ag_news")
    assert sizes(source) == (10001, 0, 7600)
    assert source.test is not None
    counts = class_counts(source, source.test)
    assert counts == dict.fromkeys(("World", "Sports", "Business", "Sci/Tech"), 1900)
    assert sorted(class_counts(source, source.train).values())[::3] == [2458, 2538]
    whole = load_source(shared / "data/ag_news/test.csv", "ag_news")
    assert whole.schema().text_columns == ("title", "description")
    bare = load_source(shared / "data/ag_news/test.csv")
    assert len(bare.train) == 7600 and len(bare.schema().labels) == 4


def test_trec_from_the_zip(shared: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shared / "data/nltk/qc.zip") as archive:
        archive.extractall(tmp_path)
    coarse = load_source(tmp_path / "qc", "trec")
    assert sizes(coarse) == (5452, 0, 500)
    assert len(coarse.schema().labels) == 6
    assert len(load_source(tmp_path / "qc", "trec/fine").schema().labels) == 50


def test_financial_phrasebank(shared: Path) -> None:
    source = load_source(shared / "data/financial_phrasebank", "phrasebank")
    assert class_counts(source, source.train) == {
        "neutral": 2879,
        "positive": 1363,
        "negative": 604,
    }
    assert source.schema().metric == "f1_macro"


def test_tweeteval(shared: Path) -> None:
    irony = load_source(shared / "data/tweeteval/irony", "tweeteval")
    assert sizes(irony) == (2862, 955, 784)
    assert irony.schema().labels == ("non_irony", "irony")
    sentiment = load_source(shared / "data/tweeteval/sentiment", "tweeteval")
    assert sizes(sentiment) == (2000, 0, 12284)
    assert sentiment.schema().labels == ("negative", "neutral", "positive")


def test_snips_and_atis(shared: Path) -> None:
    snips = load_source(shared / "data/snips", "seq_in")
    assert sizes(snips) == (13084, 700, 700) and len(snips.schema().labels) == 7
    atis = load_source(shared / "data/atis", "seq_in")
    assert sizes(atis) == (4478, 500, 893) and len(atis.schema().labels) == 21


def test_japanese(shared: Path) -> None:
    jnli = load_source(shared / "data/jglue/jnli-v1.3", "jglue/jnli")
    assert len(jnli.train) == 2434
    assert jnli.schema().labels == ("contradiction", "entailment", "neutral")
    jsts = load_source(shared / "data/jglue/jsts-v1.3", "jglue/jsts")
    assert sizes(jsts) == (12451, 1457, 0) and jsts.schema().kind == "regression"


def test_sick(shared: Path) -> None:
    source = load_source(shared / "data/sick", "sick/nli")
    assert sizes(source) == (4500, 500, 4927) and len(source.schema().labels) == 3
    assert load_source(shared / "data/sick", "sick/relatedness").schema().kind == "regression"


def test_plain_glue_files_need_no_task_name(shared: Path) -> None:
    source = load_source(shared / "data/glue/SST-2")
    assert sizes(source) == (67349, 872, 1821)
    assert source.schema().kind == "binary"


def test_movie_reviews_as_class_folders(shared: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shared / "data/nltk/movie_reviews.zip") as archive:
        archive.extractall(tmp_path)
    source = load_source(tmp_path / "movie_reviews")
    assert class_counts(source, source.train) == {"neg": 1000, "pos": 1000}
