"""Readers of public data sets whose files no general rule can explain, by `--task` name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from litebert.data.compressed import read_bytes
from litebert.data.encodings import decode_text
from litebert.data.jsonl import parse_json
from litebert.data.layouts import list_folder
from litebert.data.lines import line_table, read_line_table, read_lines, read_parallel
from litebert.data.readers import READERS, ReadOptions, Source
from litebert.data.rows import BadRows, Row
from litebert.data.tables import Table, read_table
from litebert.errors import DataError

_AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
_SICK_COLUMNS = ("pair_ID", "sentence1", "sentence2", "score", "label")


def _pick(folder: Path, *patterns: str) -> Path | None:
    """Return the first visible file of a folder that matches the first pattern with a match."""
    for pattern in patterns:
        for path in list_folder(folder):
            if path.match(pattern) and path.is_file():
                return path
    return None


def _need(folder: Path, *patterns: str) -> Path:
    path = _pick(folder, *patterns)
    if path is None:
        raise DataError(f"no file like {' or '.join(patterns)} in this folder", path=folder)
    return path


@READERS.register("seq_in")
def read_seq_in(path: Path, options: ReadOptions) -> Source:
    """Read SNIPS and ATIS intents: `seq.in` beside `label`, in train/, valid/ and test/.

    Raises:
        DataError: a file is missing, or a bad row.
    """

    def one(folder: Path) -> Table:
        return read_parallel(folder / "seq.in", folder / "label", options, "seq_in")

    if path.is_file():
        path = path.parent
    if (path / "seq.in").is_file():
        return Source(one(path), task="seq_in", text_columns=("text",), label_column="label")
    parts = {name: path / name for name in ("train", "valid", "test") if (path / name).is_dir()}
    if "train" not in parts:
        raise DataError("no seq.in and no train/seq.in in this folder", path=path)
    return Source(
        one(parts["train"]),
        one(parts["valid"]) if "valid" in parts else None,
        one(parts["test"]) if "test" in parts else None,
        "seq_in", ("text",), "label", "multiclass",
    )  # fmt: skip


@READERS.register("tweeteval")
def read_tweeteval(path: Path, options: ReadOptions) -> Source:
    """Read one TweetEval task: `train_text.txt` with `train_labels.txt`, and `mapping.txt`.

    A folder without train files (sentiment's are often left out) gives its val rows as train.

    Raises:
        DataError: a file is missing, a label number is not in the mapping, or a bad row.
    """
    folder = path if path.is_dir() else path.parent
    names = _read_mapping(folder / "mapping.txt", options)
    tables: dict[str, Table] = {}
    for split in ("train", "val", "test"):
        texts = folder / f"{split}_text.txt"
        if texts.is_file():
            table = read_parallel(texts, folder / f"{split}_labels.txt", options, "tweeteval")
            tables[split] = _rename_labels(table, names)
    if path.is_file() and path.name.split("_")[0] in tables:
        tables = {"train": tables[path.name.split("_")[0]]}
    train = tables.pop("train", None) or tables.pop("val", None)
    if train is None:
        raise DataError("no train_text.txt or val_text.txt in this folder", path=folder)
    return Source(
        train, tables.get("val"), tables.get("test"), "tweeteval", ("text",), "label",
        "binary" if len(names) == 2 else "multiclass", None, tuple(names.values()),
    )  # fmt: skip


def _read_mapping(path: Path, options: ReadOptions) -> dict[str, str]:
    names: dict[str, str] = {}
    lines, _, _ = read_lines(path, options.encoding)
    for number, line in enumerate(lines, start=1):
        key, tab, name = line.partition("\t")
        if line.strip() and not (tab and name.strip()):
            raise DataError("expected a number, a tab and a name", path=path, line=number)
        if tab:
            names[key.strip()] = name.strip()
    return names


def _rename_labels(table: Table, names: dict[str, str]) -> Table:
    for row in table.rows:
        number = row.values["label"]
        if number not in names:
            raise DataError(
                f"label {number!r:.80} is not in mapping.txt; known: {', '.join(names)}",
                path=row.path,
                line=row.line,
                column="label",
            )
        row.values["label"] = names[number]
    return table


def read_trec(path: Path, options: ReadOptions, *, fine: bool) -> Source:
    """Read TREC questions: `COARSE:fine question`, Latin-1.

    Args:
        path: folder with a train and a test file, or one file.
        options: encoding (default latin-1) and policy.
        fine: keep `COARSE:fine` (50 classes), else the coarse class (6).

    Raises:
        DataError: a line without a label, or a missing file.
    """

    def split(line: str) -> dict[str, Any] | str:
        label, space, question = line.partition(" ")
        coarse, colon, _ = label.partition(":")
        if not (space and colon and question.strip()):
            return "expected COARSE:fine, a space and a question"
        return {"text": question.strip(), "label": label if fine else coarse}

    told = replace(options, encoding=options.encoding or "latin-1")
    read = partial(read_line_table, options=told, name="trec", split=split)
    train = _need(path, "train*.txt", "train*.label") if path.is_dir() else path
    test = _pick(path, "test*.txt", "TREC_10.label", "test*.label") if path.is_dir() else None
    task = "trec/fine" if fine else "trec"
    return Source(
        read(train), None, read(test) if test else None, task, ("text",), "label", "multiclass"
    )


READERS.register("trec")(partial(read_trec, fine=False))
READERS.register("trec/fine")(partial(read_trec, fine=True))


@READERS.register("phrasebank")
def read_phrasebank(path: Path, options: ReadOptions) -> Source:
    """Read Financial PhraseBank: `sentence@label`, split at the last @; Latin-1 or UTF-8.

    Raises:
        DataError: a line without @, or a missing file.
    """

    def split(line: str) -> dict[str, Any] | str:
        sentence, _, label = line.rpartition("@")
        if not sentence.strip() or not label.strip():
            return "expected a sentence, @ and a label"
        return {"text": sentence.strip(), "label": label.strip()}

    file = _need(path, "Sentences_*.txt", "*.txt") if path.is_dir() else path
    table = read_line_table(file, options, "phrasebank", split)
    return Source(table, None, None, "phrasebank", ("text",), "label", "multiclass")


def read_clinc(path: Path, options: ReadOptions, *, out_of_scope: bool) -> Source:
    """Read CLINC150: one JSON of splits, each a list of [text, intent].

    The line of a row is its record number in its split.

    Args:
        path: `data_full.json` or its folder.
        options: encoding and policy.
        out_of_scope: join the oos splits to the others, as class "oos".

    Raises:
        DataError: not that JSON, a missing split, or a bad record.
    """
    file = _need(path, "data_full.json", "data_*.json") if path.is_dir() else path
    content = read_bytes(file)
    text, encoding = decode_text(content.data, options.encoding, file)
    document: Any = parse_json(text, file)
    if not isinstance(document, dict) or "train" not in document:
        raise DataError("expected an object with the splits train, val, test", path=file)
    splits = cast(dict[str, Any], document)

    def table(split: str) -> Table:
        bad_rows = BadRows(file, options.on_bad_row)
        rows: list[Row] = []
        for name in (split, f"oos_{split}") if out_of_scope else (split,):
            records: Any = splits.get(name, [])
            if not isinstance(records, list):
                raise DataError(f"split {name!r} is not a list", path=file)
            for number, record in enumerate(cast(list[Any], records), start=1):
                match record:
                    case [str(sentence), str(label)]:
                        rows.append(Row({"text": sentence, "label": label}, file, number))
                    case _:
                        bad_rows.add(number, f"split {name!r}: expected [text, intent]")
        return line_table(rows, bad_rows, file, "clinc150", encoding, content.sha256)

    return Source(
        table("train"),
        table("val") if "val" in splits else None,
        table("test") if "test" in splits else None,
        "clinc150" if out_of_scope else "clinc150/in_scope",
        ("text",), "label", "multiclass",
    )  # fmt: skip


READERS.register("clinc150")(partial(read_clinc, out_of_scope=True))
READERS.register("clinc150/in_scope")(partial(read_clinc, out_of_scope=False))


@READERS.register("ag_news")
def read_ag_news(path: Path, options: ReadOptions) -> Source:
    """Read AG News: `class, title, description` without header, classes 1..4 by name.

    A two-column file (description, class name) is read too; then titles are left out everywhere.

    Raises:
        DataError: other columns, a class outside 1..4, or a missing file.
    """
    train_path = _need(path, "train.csv", "train*.tsv", "train*.csv") if path.is_dir() else path
    test_path = _pick(path, "test.csv") if path.is_dir() else None
    train = _read_ag_news(train_path, options)
    test = _read_ag_news(test_path, options) if test_path else None
    texts = ("title", "description") if "title" in train.columns else ("description",)
    return Source(
        train, None, test, "ag_news", texts, "label", "multiclass", "accuracy", _AG_NEWS_CLASSES
    )


def _read_ag_news(path: Path, options: ReadOptions) -> Table:
    table = read_table(path, header=False, encoding=options.encoding, on_bad_row=options.on_bad_row)
    if len(table.columns) == 2:
        return table.with_columns(("description", "label"))
    named = table.with_columns(("label", "title", "description"))
    for row in named.rows:
        number = row.values["label"]
        if number not in ("1", "2", "3", "4"):
            raise DataError(
                f"class {number!r:.80}; allowed: 1 to 4",
                path=row.path,
                line=row.line,
                column="label",
            )
        row.values["label"] = _AG_NEWS_CLASSES[int(number) - 1]
    return named


def read_jglue(path: Path, options: ReadOptions, *, regression: bool) -> Source:
    """Read JNLI or JSTS: JSON lines of sentence1, sentence2, label.

    Raises:
        DataError: a missing file or a bad record.
    """

    def read(file: Path) -> Table:
        return read_table(file, encoding=options.encoding, on_bad_row=options.on_bad_row)

    if path.is_dir():
        valid = _pick(path, "valid*.json", "dev*.json")
        train = _pick(path, "train*.json") or valid
        if train is None:
            raise DataError("no train*.json or valid*.json in this folder", path=path)
        evaluation = read(valid) if valid and valid != train else None
    else:
        train, evaluation = path, None
    task, kind = ("jglue/jsts", "regression") if regression else ("jglue/jnli", "multiclass")
    return Source(read(train), evaluation, None, task, ("sentence1", "sentence2"), "label", kind)


READERS.register("jglue/jnli")(partial(read_jglue, regression=False))
READERS.register("jglue/jsts")(partial(read_jglue, regression=True))


def read_sick(path: Path, options: ReadOptions, *, regression: bool) -> Source:
    """Read SICK: five tab columns, with or without the official header.

    Raises:
        DataError: other columns or a missing file.
    """

    def read(file: Path) -> Table:
        table = read_table(
            file, format="tsv", delimiter="\t", quoting=False, encoding=options.encoding,
            on_bad_row=options.on_bad_row,
        )  # fmt: skip
        return table.with_columns(_SICK_COLUMNS)

    folder = path.is_dir()
    train = _need(path, "SICK_train*.txt") if folder else path
    trial = _pick(path, "SICK_trial*.txt") if folder else None
    test = _pick(path, "SICK_test*.txt") if folder else None
    return Source(
        read(train),
        read(trial) if trial else None,
        read(test) if test else None,
        "sick/relatedness" if regression else "sick/nli",
        ("sentence1", "sentence2"),
        "score" if regression else "label",
        "regression" if regression else "multiclass",
    )


READERS.register("sick/nli")(partial(read_sick, regression=False))
READERS.register("sick/relatedness")(partial(read_sick, regression=True))
