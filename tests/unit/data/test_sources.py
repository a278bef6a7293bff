from __future__ import annotations

from pathlib import Path

import pytest

from litebert.data.layouts import list_folder
from litebert.data.lines import read_lines
from litebert.data.sources import load_source
from litebert.errors import DataError, SettingsError


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
    write(tmp_path / "snips/train/seq.in", "play a song\nbook a table\n")
    write(tmp_path / "snips/train/label", "Music\nFood\n")
    assert len(load_source(tmp_path / "snips").train) == 2  # recognised without a task name
    assert len(load_source(tmp_path / "snips" / "train").train) == 2
    assert len(load_source(tmp_path / "snips/train/seq.in", "seq_in").train) == 2
    write(tmp_path / "irony" / "mapping.txt", "0\tcalm\n1\tcross\n")
    write(tmp_path / "irony" / "train_text.txt", "one\ntwo\n")
    write(tmp_path / "irony" / "train_labels.txt", "0\n1\n")
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
