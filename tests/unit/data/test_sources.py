from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from litebert.data.examples import make_examples
from litebert.data.layouts import list_folder
from litebert.data.lines import read_lines
from litebert.data.sources import READERS, load_source
from litebert.errors import DataError, LitebertError, SettingsError


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding, newline="")
    return path


def labels(table: object) -> list[object]:
    return [row.values["label"] for row in table.rows]  # type: ignore[attr-defined]


def test_files_named_after_splits(tmp_path: Path) -> None:
    for name in ("train.csv", "valid.csv", "test.csv", "notes.md", "train-old.csv"):
        write(tmp_path / name, "text,label\nhello you,a\nbye you,b\n")
    source = load_source(tmp_path)
    assert [t.path.name for t in source.tables()] == ["train.csv", "valid.csv", "test.csv"]
    assert "train = train.csv" in source.schema().reasons[0]


def test_several_candidates_are_not_guessed(tmp_path: Path) -> None:
    for name in ("train-1.csv", "train-2.csv"):
        write(tmp_path / name, "text,label\nhello you,a\nbye you,b\n")
    with pytest.raises(DataError, match="2 files could be the train split"):
        load_source(tmp_path)


def test_class_folders(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for name in ("neg", "pos"):
            for number in (1, 2, 10):
                write(tmp_path / split / name / f"{number}_7.txt", f"{name} {number}\nmore")
    write(tmp_path / "train" / "unsup" / "0.txt", "no label")
    source = load_source(tmp_path)
    assert labels(source.train) == ["neg"] * 3 + ["pos"] * 3
    assert [row.path.name for row in source.train.rows[:3]] == ["1_7.txt", "2_7.txt", "10_7.txt"]
    assert source.eval is None and source.test is not None and len(source.test) == 6
    assert any("unsup" in note for note in source.train.notes)
    assert source.schema().labels == ("neg", "pos")
    assert len(load_source(tmp_path / "train").train) == 6
    write(tmp_path / "train" / "neg" / "3.txt", "nul \x00 here")
    with pytest.raises(DataError, match="NUL") as caught:
        load_source(tmp_path)
    assert caught.value.path == tmp_path / "train" / "neg" / "3.txt"
    write(tmp_path / "train" / "neg" / "4.txt", "")
    skipped = load_source(tmp_path, on_bad_row="skip").train.skipped
    assert [row.path.name for row in skipped] == ["3.txt", "4.txt"]


def test_folders_without_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file named train"):
        load_source(tmp_path)
    for name in ("a", "b"):
        write(tmp_path / name / "x.txt", "\x00" * 900)
    with pytest.raises(DataError, match="no usable text files"):
        load_source(tmp_path, on_bad_row="skip")


def test_fasttext(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "__label__a __label__b hi there\n__label__a bye\n\n")
    source = load_source(path)
    assert labels(source.train) == [["a", "b"], ["a"]]
    assert source.schema().kind == "multilabel"
    assert [row.line for row in source.train.rows] == [1, 2]
    with pytest.raises(DataError, match="no usable rows"):
        load_source(write(path, "__label__a\n"), on_bad_row="skip")


def test_a_separate_eval_file(tmp_path: Path) -> None:
    train = write(tmp_path / "a.csv", "3,one long text here,x y\n4,another text,z\n" * 4)
    other = write(tmp_path / "b.csv", "other,words,here\n3,text,y\n")
    source = load_source(train, eval_path=other)
    assert source.eval is not None
    assert source.eval.columns == source.train.columns == ["column_1", "column_2", "column_3"]
    assert len(source.eval) == 2  # no header, because the training file has none
    folder = tmp_path / "classes"
    for name in ("x", "y"):
        write(folder / name / "1.txt", "words")
    assert load_source(train, eval_path=folder).eval is not None
    cola = write(tmp_path / "t.tsv", "k\t1\t\tfine one\nk\t0\t*\tone bad\n")
    assert load_source(cola, "glue/cola", eval_path=cola).eval is not None


GLUE_FILES: dict[str, tuple[str, list[str]]] = {
    "cola": ("gj\t1\t\tHe said \"no.\ngj\t0\t*\tSaid he.\n", ['He said "no.', "Said he."]),
    "sst2": ("sentence\tlabel\na \" b \t1\nc\t0\n", ['a " b ', "c"]),
    "mrpc": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\t\" One\tTwo\n0\t9\t8\tThree\tFour\n",
        ['" One', "Three"],
    ),
    "stsb": ("index\tsentence1\tsentence2\tscore\n0\ta\tb\t4.5\n1\tc\td\t0.0\n", ["a", "c"]),
    "rte": ("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n1\tc\td\tnot_entailment\n", ["a", "c"]),
    "qnli": ("index\tquestion\tsentence\tlabel\n0\ta\tb\tentailment\n1\tc\td\tnot_entailment\n", ["a", "c"]),
    "wnli": ("index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n1\tc\td\t0\n", ["a", "c"]),
    "qqp": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\ta\tb\t1\n1\t3\t4\tc\td\t0\n", ["a", "c"]),
    "mnli": (
        "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n0\tx\ta\tb\tneutral\tneutral\n"
        "1\tx\tc\td\tentailment\tentailment\n",
        ["a", "c"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GLUE_FILES)
def test_glue_layouts(tmp_path: Path, name: str) -> None:
    text, first_texts = GLUE_FILES[name]
    for file in ("train.tsv", "dev_matched.tsv" if name == "mnli" else "dev.tsv"):
        write(tmp_path / file, text)
    source = load_source(tmp_path, f"glue/{name}")
    examples = make_examples(source.train, source.schema())
    assert [example.text for example in examples] == first_texts
    assert source.eval is not None and len(source.eval) == 2
    assert source.schema().is_pair == (name not in ("cola", "sst2"))


def test_glue_faults(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", "sentence\tlabel\nx\t1\n")
    with pytest.raises(DataError, match=r"needs train.tsv .* which has dev.tsv"):
        load_source(tmp_path, "glue/sst2")
    with pytest.raises(DataError, match="lacks the column 'sentence1'"):
        load_source(tmp_path / "dev.tsv", "glue/rte")
    with pytest.raises(DataError, match="expected 4"):
        load_source(write(tmp_path / "c.tsv", "a\tb\nc\td\n"), "glue/cola")
    ax = write(tmp_path / "diagnostic.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n")
    source = load_source(ax, "glue/ax")
    with pytest.raises(DataError, match="has no labels"):
        source.schema()
    with pytest.raises(SettingsError, match="did you mean 'glue/cola'"):
        load_source(tmp_path, "glue/colla")
    with pytest.raises(DataError, match="no such file or folder"):
        load_source(tmp_path / "nowhere", "glue/cola")


def test_telling_another_label_column_forgets_what_the_reader_knew(tmp_path: Path) -> None:
    path = write(tmp_path / "train.tsv", "k\t1\t\tone two\nk\t0\t*\tthree four\nm\t0\t*\tfive\n")
    schema = load_source(path, "glue/cola").schema(label_column="source")
    assert schema.labels == ("k", "m")


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


NAMED: dict[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    "seq_in": (make_seq_in, ["play a song", "book a table"], ["Music", "Food"]),
    "tweeteval": (make_tweeteval, ["one", "two"], ["calm", "cross"]),
    "trec": (make_trec, ["How many cafés ?", "Where ?"], ["NUM", "LOC"]),
    "trec/fine": (make_trec, ["How many cafés ?", "Where ?"], ["NUM:count", "LOC:city"]),
    "phrasebank": (make_phrasebank, ["Mail me @ café .", "Up ."], ["neutral", "positive"]),
    "clinc150": (make_clinc, ["a b", "c d", "e f"], ["x", "y", "oos"]),
    "clinc150/in_scope": (make_clinc, ["a b", "c d"], ["x", "y"]),
    "ag_news": (make_ag_news, ["A title", 'B "title"'], ["Business", "Sci/Tech"]),
    "jglue/jnli": (make_jnli, ["猫", "猫"], ["neutral", "entailment"]),
    "jglue/jsts": (make_jsts, ["猫", "猫"], ["0.5", "3.5"]),
    "sick/nli": (make_sick, ["a cat", "a"], ["NEUTRAL", "ENTAILMENT"]),
    "sick/relatedness": (make_sick, ["a cat", "a"], ["2.5", "5.0"]),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_layouts(tmp_path: Path, name: str) -> None:
    make, texts, expected = NAMED[name]
    make(tmp_path)
    source = load_source(tmp_path, name)
    told = {"kind": "multiclass"} if source.kind in ("multiclass", None) else {}
    examples = make_examples(source.train, source.schema(**told))
    assert [example.text for example in examples] == texts
    assert [str(example.label) for example in examples] == expected
    assert [example.line for example in examples][:2] == [1, 2]


@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_foreign_things_with_a_data_error(tmp_path: Path, name: str) -> None:
    reader = READERS.get(name)
    assert callable(reader)
    cases = (
        tmp_path / "empty.txt", tmp_path / "binary.tsv", tmp_path / "folder", tmp_path / "odd.json",
    )  # fmt: skip
    cases[0].write_bytes(b"")
    cases[1].write_bytes(bytes(range(256)) * 9)
    cases[2].mkdir()
    cases[3].write_text("[1, 2\n{")
    for path in cases:
        with pytest.raises(LitebertError):
            source = load_source(path, name)
            source.schema()


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("seq_in", {"seq.in": "a\nb\n", "label": "x\n"}, "2 lines, but label has 1"),
        (
            "tweeteval",
            {"mapping.txt": "0\tx\n", "train_text.txt": "a\n", "train_labels.txt": "7\n"},
            "not in mapping",
        ),
        ("tweeteval", {"mapping.txt": "0 x\n"}, "a number, a tab and a name"),
        ("tweeteval", {"mapping.txt": "0\tx\n"}, "no train_text.txt"),
        ("trec", {"train.txt": "NUM How many ?\n"}, "expected COARSE:fine"),
        ("trec", {"other": "x"}, "no file like train"),
        ("phrasebank", {"Sentences_x.txt": "no label here\n"}, "expected a sentence, @"),
        ("clinc150", {"data_full.json": "[]"}, "expected an object with the splits"),
        ("clinc150", {"data_full.json": '{"train": 3}'}, "is not a list"),
        ("clinc150", {"data_full.json": '{"train": [["a"]]}'}, r"expected \[text, intent\]"),
        ("clinc150", {"data_full.json": '{"train": ['}, "not JSON"),
        ("ag_news", {"train.csv": "7,a,b\n"}, "allowed: 1 to 4"),
        ("ag_news", {"train.csv": "7,a,b,c\n"}, "expected 3"),
        ("jglue/jnli", {"other": "x"}, "no train"),
        ("seq_in", {"other": "x"}, "no seq.in"),
    ],
)
def test_named_faults(tmp_path: Path, name: str, files: dict[str, str], message: str) -> None:
    for file, text in files.items():
        write(tmp_path / file, text)
    with pytest.raises(DataError, match=message):
        load_source(tmp_path, name)


def test_parts_of_named_data(tmp_path: Path) -> None:
    make_seq_in(tmp_path / "snips" / "train")
    assert len(load_source(tmp_path / "snips").train) == 2  # recognised without a task name
    assert len(load_source(tmp_path / "snips" / "train").train) == 2
    assert len(load_source(tmp_path / "snips/train/seq.in", "seq_in").train) == 2
    make_tweeteval(tmp_path / "irony")
    write(tmp_path / "irony" / "val_text.txt", "three\n")
    write(tmp_path / "irony" / "val_labels.txt", "1\n")
    assert load_source(tmp_path / "irony").train.format == "tweeteval"
    assert labels(load_source(tmp_path / "irony/val_text.txt", "tweeteval").train) == ["cross"]
    news = write(tmp_path / "train.tsv", "A text, long\tSports\nB text\tWorld\nC text\tWorld\n")
    assert load_source(news, "ag_news").schema().text_columns == ("description",)


def test_folders_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litebert.data.layouts._MAX_FILES", 1)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="2 entries, at most 1"):
        list_folder(tmp_path)
    with pytest.raises(DataError, match="cannot list the folder"):
        list_folder(tmp_path / "absent")
    monkeypatch.undo()
    plain_iterdir = Path.iterdir

    def refuse(self: Path) -> object:
        if self.name == "a":
            raise PermissionError(13, "Permission denied")
        return plain_iterdir(self)

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        load_source(tmp_path)


def test_lines(tmp_path: Path) -> None:
    lines, encoding, _ = read_lines(write(tmp_path / "x.txt", "a\r\n\r\nb"))
    assert (lines, encoding) == (["a", "", "b"], "utf-8")
