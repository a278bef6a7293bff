from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from litebert.data.check import check_data
from litebert.data.near_duplicates import find_near_duplicates, jaccard, signatures
from litebert.data.report import DataReport
from litebert.data.schema import infer_schema
from litebert.data.tables import Table, read_table
from litebert.errors import DataError, SettingsError

LINE = (
    "order parcel refund money card late never broken happy quick reply agent phone screen lost "
    "found city street paid twice wrong colour size return label box email account login key"
)
WORDS = np.array(LINE.split())


def sentences(number: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(WORDS, 9))} {i}" for i in range(number)]


def make(path: Path, texts: list[str], labels: list[str]) -> Table:
    lines = [f'"{text}",{label}' for text, label in zip(texts, labels, strict=True)]
    path.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return read_table(path, on_bad_row="skip")


def codes(report: DataReport) -> dict[str, str]:
    return {problem.code: problem.severity for problem in report.problems}


@dataclass
class FakeEncoding:
    ids: list[int]
    truncated: int


class LetterTokenizer:
    unk_id = 1

    def encode_batch(
        self, texts: list[object], max_length: int | None = None
    ) -> list[FakeEncoding]:
        out = []
        for text in texts:
            ids = [
                1 if c == "z" else 5 for c in ("".join(text) if isinstance(text, tuple) else text)
            ]  # type: ignore[arg-type, union-attr]
            keep = ids[: (max_length or len(ids) + 2) - 2]
            out.append(FakeEncoding([2, *keep, 3], len(ids) - len(keep)))
        return out


def test_clean_data_is_clean(tmp_path: Path) -> None:
    table = make(tmp_path / "a.csv", sentences(200), ["yes", "no"] * 100)
    report = check_data(
        table, schema=infer_schema(table), tokenizer=LetterTokenizer(), max_length=512
    )
    assert report.is_clean and not report.problems
    assert (report.num_train, report.num_eval, report.eval_is_split) == (180, 20, True)
    assert report.class_counts == {"no": 100, "yes": 100}
    assert report.majority_baseline == {"accuracy": 0.5}
    assert report.lengths is not None and report.lengths.truncated_fraction == 0
    assert report.to_text().endswith("no errors")
    saved = json.loads(json.dumps(report.to_json()))
    assert saved["format_version"] == 1 and saved["is_clean"]


def test_everything_wrong_is_found(tmp_path: Path) -> None:
    texts = sentences(100)
    texts += [texts[0], texts[1].upper(), texts[2], "rare words of their own"]
    labels = ["a", "b"] * 50 + ["a", "b", "b", "c"]
    table = make(tmp_path / "train.csv", [*texts, "", "fine text"], [*labels, "a", ""])
    held_out = [texts[5], texts[6].replace("1", "1 "), sentences(1, seed=9)[0], texts[8] + " now"]
    other = make(tmp_path / "eval.csv", [*held_out, "what"], ["b", "a", "a", "a", "unheard"])
    report = check_data(
        table, other, schema=infer_schema(table), tokenizer=LetterTokenizer(), max_length=20
    )
    assert not report.is_clean
    assert codes(report) == {
        "unreadable_rows": "error",
        "leakage": "error",
        "near_leakage": "error",
        "conflicting_labels": "warning",
        "rare_classes": "warning",
        "unscored_classes": "warning",
        "duplicates": "warning",
        "truncation": "warning",
    }
    assert (report.num_unreadable, report.num_empty) == (3, 1)
    assert (report.num_duplicates, report.num_normalised_duplicates) == (2, 3)
    assert report.num_conflicts == 2
    assert report.num_leaked >= 1 and report.num_near_leaked >= 1
    assert report.num_leaked + report.num_near_leaked == 3
    places = {p.code: [(Path(x.path).name, x.line) for x in p.places] for p in report.problems}
    assert places["unreadable_rows"] == [("train.csv", 106), ("train.csv", 107), ("eval.csv", 6)]
    assert ("eval.csv", 2) in places["leakage"]
    assert "errors were found" in report.to_text() and "train.csv:106" in report.to_text()


def test_classes_without_rows_and_dominant_ones(tmp_path: Path) -> None:
    table = make(tmp_path / "a.csv", sentences(100), ["a"] * 98 + ["b"] * 2)
    schema = infer_schema(table, labels=["a", "b", "never"])
    assert codes(check_data(table, schema=schema)) == {
        "untrained_classes": "error",
        "rare_classes": "warning",
        "dominant_class": "warning",
    }


def test_labels_that_differ_in_case_only(tmp_path: Path) -> None:
    table = make(tmp_path / "a.csv", sentences(60), ["Yes", "yes", "no"] * 20)
    assert codes(check_data(table, schema=infer_schema(table))) == {"similar_labels": "warning"}


def test_many_conflicts_are_an_error(tmp_path: Path) -> None:
    texts = sentences(50)
    table = make(tmp_path / "a.csv", texts + texts[:10], ["a", "b"] * 25 + ["b", "a"] * 5)
    assert codes(check_data(table, schema=infer_schema(table)))["conflicting_labels"] == "error"


def test_unknown_pieces(tmp_path: Path) -> None:
    table = make(tmp_path / "a.csv", [t + " zzzzz" for t in sentences(40)], ["a", "b"] * 20)
    report = check_data(table, schema=infer_schema(table), tokenizer=LetterTokenizer())
    assert codes(report)["unknown_pieces"] == "warning"


def test_regression_and_multilabel(tmp_path: Path) -> None:
    table = make(tmp_path / "a.csv", sentences(40), [str(i / 8) for i in range(40)])
    report = check_data(table, schema=infer_schema(table))
    assert report.class_counts == {} and 0 < report.majority_baseline["mae"] < 5
    table = make(tmp_path / "b.csv", sentences(40), ["a|b", "a", "b", "a"] * 10)
    report = check_data(table, schema=infer_schema(table))
    assert report.class_counts == {"a": 30, "b": 20}
    assert report.majority_baseline == {"subset_accuracy": 0.5}


def test_a_single_text_cannot_be_split_but_is_reported(tmp_path: Path) -> None:
    table = make(tmp_path / "a.csv", ["same text"] * 4, ["a", "b"] * 2)
    report = check_data(table, schema=infer_schema(table))
    assert (report.num_train, report.num_eval) == (4, 0)


def test_faults_of_the_call(tmp_path: Path) -> None:
    table = make(tmp_path / "a.csv", sentences(10), ["a", "b"] * 5)
    with pytest.raises(SettingsError, match="max_length is 2"):
        check_data(table, schema=infer_schema(table), max_length=2)
    with pytest.raises(DataError, match="no usable rows; the first"):
        check_data(table, schema=infer_schema(table, labels=["x", "y"]))


def test_near_duplicates_agree_with_all_pairs() -> None:
    references = sentences(150)
    rng = np.random.default_rng(5)
    texts = []
    for text in references[:60]:
        letters = list(text)
        for position in rng.integers(0, len(letters), rng.integers(0, 4)):
            letters[position] = "q"
        texts.append("".join(letters))
    found = {near.index: near.similarity for near in find_near_duplicates(texts, references)}
    exact = {i: max(jaccard(text, other) for other in references) for i, text in enumerate(texts)}
    expected = {i: s for i, s in exact.items() if s >= 0.8}
    assert found == expected and 10 < len(found) < 60


def test_signatures_estimate_similarity() -> None:
    first, second = "the parcel came late and broken", "the parcel came late and was broken"
    mine = signatures([first, second])
    estimate = float((mine[0] == mine[1]).mean())
    assert abs(estimate - jaccard(first, second)) < 0.2  # standard error 0.06 with 64 hashes
    assert (signatures([first])[0] == mine[0]).all()


def test_odd_texts() -> None:
    texts = ["", "a", "日本", "😀" * 3000, "x" * 5000]
    found = find_near_duplicates(texts, texts)
    assert [(near.index, near.other, near.similarity) for near in found] == [
        (i, i, 1.0) for i in range(5)
    ]
    assert find_near_duplicates([], texts) == [] == find_near_duplicates(texts, [])
