"""Every reader, by the name that `--task` takes: sample files in, labelled examples out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from litebert.data.examples import make_examples
from litebert.data.sources import READERS, load_source
from litebert.errors import LitebertError, SettingsError


def write(path: Path, text: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding, newline="")


def make_seq_in(folder: Path) -> None:
    write(folder / "seq.in", "play a song\nbook a table\n")
    write(folder / "label", "Music\nFood\n")


def make_tweeteval(folder: Path) -> None:
    write(folder / "mapping.txt", "0\tcalm\n1\tcross\n")
    write(folder / "train_text.txt", "one\ntwo\n")
    write(folder / "train_labels.txt", "0\n1\n")


def make_trec(folder: Path) -> None:
    write(folder / "train.txt", "NUM:count How many caf\xe9s ?\nLOC:city Where ?\n", "latin-1")


def make_phrasebank(folder: Path) -> None:
    write(folder / "Sentences_made.txt", "Mail me @ caf\xe9 .@neutral\nUp .@positive\n", "latin-1")


def make_clinc(folder: Path) -> None:
    document = {"train": [["a b", "x"], ["c d", "y"]], "oos_train": [["e f", "oos"]]}
    write(folder / "data_full.json", json.dumps(document))


def make_ag_news(folder: Path) -> None:
    write(folder / "train.csv", '"3","A title","A text"\n"4","B ""title""","B text"\n')


def make_jnli(folder: Path) -> None:
    rows = [{"sentence1": "猫", "sentence2": "犬", "label": x} for x in ("neutral", "entailment")]
    write(folder / "valid-v1.json", "\n".join(json.dumps(row) for row in rows))


def make_jsts(folder: Path) -> None:
    rows = [{"sentence1": "猫", "sentence2": "犬", "label": x} for x in (0.5, 3.5)]
    write(folder / "train-v1.json", "\n".join(json.dumps(row) for row in rows))


def make_sick(folder: Path) -> None:
    write(folder / "SICK_train.txt", "1\ta cat\ta dog\t2.5\tNEUTRAL\n2\ta\tb\t5\tENTAILMENT\n")


def make_glue(text: str, dev: str = "dev.tsv") -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for name in ("train.tsv", dev):
            write(folder / name, text)

    return make


def make_ax(folder: Path) -> None:
    write(folder / "diagnostic.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n1\tc\td\n")


@dataclass(frozen=True)
class Sample:
    """What a reader finds in the folder that `make` fills; `labels` is None without any."""

    make: Callable[[Path], None]
    texts: list[str]
    labels: list[str] | None


NLI = ["neutral", "entailment"]
QNLI = ["entailment", "not_entailment"]
MNLI = (
    "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n0\tx\ta\tb\tneutral\tneutral\n"
    "1\tx\tc\td\tentailment\tentailment\n"
)
SAMPLES: dict[str, Sample] = {
    "glue/cola": Sample(
        make_glue('gj\t1\t\tHe said "no.\ngj\t0\t*\tSaid he.\n'), ['He said "no.', "Said he."], ["1", "0"]
    ),
    "glue/sst2": Sample(
        make_glue('sentence\tlabel\na " b \t1\nc\t0\n'), ['a " b ', "c"], ["1", "0"]
    ),
    "glue/mrpc": Sample(
        make_glue(
            '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\t" One\tTwo\n0\t9\t8\tThree\tFour\n'
        ),
        ['" One', "Three"],
        ["1", "0"],
    ),
    "glue/stsb": Sample(
        make_glue("index\tsentence1\tsentence2\tscore\n0\ta\tb\t4.5\n1\tc\td\t0.0\n"), ["a", "c"], ["4.5", "0.0"]
    ),
    "glue/rte": Sample(
        make_glue("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\tc\td\tnot_entailment\n"),
        ["a", "c"], QNLI,
    ),
    "glue/qnli": Sample(
        make_glue("index\tquestion\tsentence\tlabel\n0\ta\tb\tentailment\n1\tc\td\tnot_entailment\n"), ["a", "c"], QNLI
    ),
    "glue/wnli": Sample(
        make_glue("index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n1\tc\td\t0\n"), ["a", "c"], ["1", "0"]
    ),
    "glue/qqp": Sample(
        make_glue("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\ta\tb\t1\n1\t3\t4\tc\td\t0\n"),
        ["a", "c"], ["1", "0"],
    ),
    "glue/mnli": Sample(make_glue(MNLI, "dev_matched.tsv"), ["a", "c"], NLI),
    "glue/mnli_mismatched": Sample(make_glue(MNLI, "dev_mismatched.tsv"), ["a", "c"], NLI),
    "glue/ax": Sample(make_ax, ["a", "c"], None),
    "seq_in": Sample(make_seq_in, ["play a song", "book a table"], ["Music", "Food"]),
    "tweeteval": Sample(make_tweeteval, ["one", "two"], ["calm", "cross"]),
    "trec": Sample(make_trec, ["How many cafés ?", "Where ?"], ["NUM", "LOC"]),
    "trec/fine": Sample(make_trec, ["How many cafés ?", "Where ?"], ["NUM:count", "LOC:city"]),
    "phrasebank": Sample(make_phrasebank, ["Mail me @ café .", "Up ."], ["neutral", "positive"]),
    "clinc150": Sample(make_clinc, ["a b", "c d", "e f"], ["x", "y", "oos"]),
    "clinc150/in_scope": Sample(make_clinc, ["a b", "c d"], ["x", "y"]),
    "ag_news": Sample(make_ag_news, ["A title", 'B "title"'], ["Business", "Sci/Tech"]),
    "jglue/jnli": Sample(make_jnli, ["猫", "猫"], ["neutral", "entailment"]),
    "jglue/jsts": Sample(make_jsts, ["猫", "猫"], ["0.5", "3.5"]),
    "sick/nli": Sample(make_sick, ["a cat", "a"], ["NEUTRAL", "ENTAILMENT"]),
    "sick/relatedness": Sample(make_sick, ["a cat", "a"], ["2.5", "5.0"]),
}  # fmt: skip


def test_every_reader_has_a_sample() -> None:
    assert set(READERS) == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_files_become_the_expected_examples(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    sample.make(tmp_path)
    source = load_source(tmp_path, name)
    assert source.task == name
    for table in source.tables():
        assert table.rows and not table.skipped and len(table.sha256) == 64
        assert set(source.text_columns or ()) <= set(table.columns)
    if sample.labels is None:
        assert not source.is_labelled
        assert [
            row.values[(source.text_columns or ("",))[0]] for row in source.train.rows
        ] == sample.texts
        return
    schema = source.schema(**({"kind": "multiclass"} if source.kind == "multiclass" else {}))
    assert source.label_column == schema.label_column
    assert schema.text_columns == source.text_columns
    for table in source.tables():
        examples = make_examples(table, schema)
        assert [example.text for example in examples] == sample.texts
        assert [str(example.label) for example in examples] == sample.labels
        assert all((example.pair is not None) == schema.is_pair for example in examples)
        first = examples[0].line
        assert [example.line for example in examples][:2] == [first, first + 1]


@pytest.mark.parametrize("name", SAMPLES)
def test_foreign_files_are_refused(tmp_path: Path, name: str) -> None:
    cases = (
        tmp_path / "empty.txt", tmp_path / "binary.tsv", tmp_path / "folder", tmp_path / "odd.json",
        tmp_path / "nowhere",
    )  # fmt: skip
    cases[0].write_bytes(b"")
    cases[1].write_bytes(bytes(range(256)) * 9)
    cases[2].mkdir()
    cases[3].write_text("[1, 2\n{")
    for path in cases:
        with pytest.raises(LitebertError):
            load_source(path, name).schema()


FOREIGN = """
from litebert.data.readers import Source

def read(path, options):
    return Source(options.read(path / "mine.csv"), task="mine")

def nothing(path, options):
    return None

def crooked(path):
    return None
"""


def test_a_reader_outside_the_project_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mine.csv", "text,label\nhello you,a\nbye you,b\n")
    write(tmp_path / "own_reader.py", FOREIGN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(READERS, "_items", dict(READERS._items))
    source = load_source(tmp_path, "own_reader:read", eval_path=tmp_path)
    assert len(source.train) == 2
    assert source.eval is not None and len(source.eval) == 2
    with pytest.raises(SettingsError, match="returned a NoneType"):
        load_source(tmp_path, "own_reader:nothing")
    with pytest.raises(SettingsError, match="cannot be called with"):
        load_source(tmp_path, "own_reader:crooked")
    READERS.register("crooked")(READERS.get("own_reader:crooked"))
    with pytest.raises(TypeError):  # a fault of a registered reader keeps its traceback
        load_source(tmp_path, "crooked")
