"""RACE, DREAM, ARC, CommonsenseQA and JCommonsenseQA in their own layouts, whole and broken."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.choices import CHOICE_READERS, ChoiceRecord, read_choices
from litebert.data.choices.record import group_of, position_of_key, record_problem
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource
from litebert.errors import DataError, LitebertError

STOP = ReadOptions()
SKIP = ReadOptions(on_bad_row="skip")


def passage(number: int = 1, level: str = "high", **changes: Any) -> dict[str, Any]:
    return {
        "answers": ["B", "D"],
        "options": [["a kettle", "a lamp", "a chair", "a door"], ["red", "blue", "green", "white"]],
        "questions": ["What was sold?", "The parcel was  _  ."],
        "article": f"Story {number}. A lamp was sold in a white parcel.",
        "id": f"{level}{number}.txt",
    } | changes


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, f"w:{path.suffix[1:].replace('tar', '')}") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def as_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def read(name: str, path: Path, options: ReadOptions = STOP, labelled: bool = True) -> Any:
    return CHOICE_READERS[name][1](path, options, labelled)


def members(parts: tuple[str, ...] = ("train", "dev", "test")) -> dict[str, bytes]:
    return {
        f"RACE/{part}/{level}/{n}.txt": as_bytes(passage(n, level))
        for part in parts
        for level in ("middle", "high")
        for n in (1, 2)
    }


@pytest.fixture
def race_folder(tmp_path: Path) -> Path:
    for name, data in members().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "RACE"


def counts(source: RecordSource[ChoiceRecord]) -> tuple[int, ...]:
    return tuple(len(s.records) if s else 0 for s in (source.train, source.eval, source.test))


def test_race_folders_and_archives_hold_the_same(race_folder: Path, tmp_path: Path) -> None:
    one = write_tar(tmp_path / "RACE.tar.gz", members())
    # The folder that holds both does not hold anything twice.
    sources = [read("race", path) for path in (race_folder, race_folder.parent, one)]
    for source in sources:
        assert counts(source) == (8, 8, 8)
        rows = [
            (r.question, r.choices, r.label, r.id, r.group, r.line, r.subset)
            for r in source.train.records
        ]
        assert sorted(rows) == sorted(
            (q, tuple(o), label, f"{level}{n}.txt#{line}", f"{level}{n}.txt", line, level)
            for level in ("middle", "high")
            for n in (1, 2)
            for line, (q, o, label) in enumerate(
                zip(passage()["questions"], passage()["options"], (1, 3), strict=True), start=1
            )
        )
    assert read_choices(race_folder, STOP, True).notes == sources[0].notes
    assert counts(read("race/middle", one)) == (4, 4, 4)
    assert {r.subset for r in read("race/high", race_folder).train.records} == {"high"}


def test_race_archives_named_by_part_and_level(tmp_path: Path) -> None:
    write_tar(tmp_path / "race-dev.tar.xz", {"10.txt": as_bytes(passage(10))})
    write_tar(tmp_path / "race-train-high.tar.xz", {"7.txt": as_bytes(passage(7, id="7"))})
    write_tar(tmp_path / "race-train-middle.tar", {"8.txt": as_bytes(passage(8, id=8))})
    source = read_choices(tmp_path, STOP, True)
    assert counts(source) == (4, 2, 0)
    assert {r.subset for r in source.train.records} == {"high", "middle"}
    assert {r.group for r in source.train.records} == {"7", "8"}
    only = read("race", tmp_path / "race-dev.tar.xz")
    assert counts(only) == (2, 0, 0) and "takes its place" in only.notes[-1]
    assert only.train.records[0].subset == "high", "the level stands in the id"


def test_one_passage_is_a_source(tmp_path: Path) -> None:
    path = tmp_path / "5.txt"
    path.write_bytes(b"\xef\xbb\xbf" + as_bytes(passage(5)))
    source = read_choices(path, STOP, True)
    assert counts(source) == (2, 0, 0)
    unanswered = passage(5, answers=["", ""])
    path.write_bytes(as_bytes(unanswered))
    assert [r.label for r in read_choices(path, STOP, False).train.records] == [None, None]
    del unanswered["answers"]
    path.write_bytes(as_bytes(unanswered))
    assert [r.label for r in read_choices(path, STOP, False).train.records] == [None, None]
    with pytest.raises(DataError, match="the question has no answer"):
        read_choices(path, STOP, True)


def test_a_test_part_without_answers_is_left_out(tmp_path: Path) -> None:
    blind = passage(3, answers=["", ""])
    path = write_tar(
        tmp_path / "r.tar",
        {"train/high/1.txt": as_bytes(passage()), "test/high/3.txt": as_bytes(blind)},
    )
    source = read("race", path)
    assert counts(source) == (2, 0, 0) and "no answers" in source.notes[-1]
    assert counts(read("race", path, STOP, labelled=False)) == (2, 0, 2)


BROKEN: dict[str, tuple[Any, str]] = {
    "list": ([1, 2], "not an object"),
    "keys": ({"article": "x"}, "lacks questions, options"),
    "type": (passage(questions="why?"), "questions is a str"),
    "counts": (passage(answers=["A"]), "as many of each"),
    "question": (passage(questions=["ok?", 7]), "expected a text, got int"),
    "few": (passage(options=[["one"], ["a", "b"]]), "1 choices; allowed: 2 to 26"),
    "many": (passage(options=[["x"] * 27, ["a", "b"]]), "27 choices"),
    "options": (passage(options=["abcd", ["a", "b"]]), "0 choices"),
    "empty": (passage(options=[["a", " "], ["a", "b", "c", "d"]]), "choice B: is empty"),
    "null": (passage(options=[["a", None], ["a", "b", "c", "d"]]), "got null"),
    "key": (passage(answers=["E", "A"]), "answer 'E' names none of the 4"),
    "number": (passage(answers=[1, "A"]), "answer 1 names none"),
    "nul": (passage(article="a\x00b"), "NUL"),
    "surrogate": (passage(questions=["\ud800", "x?"]), "lone surrogate"),
    "nothing": (passage(article=" ", questions=["", "x"]), "both empty"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_bad_passage_is_named_or_counted(tmp_path: Path, case: str) -> None:
    document, message = BROKEN[case]
    content = json.dumps(document).encode()
    path = write_tar(
        tmp_path / "r.tar.bz2",
        {"train/high/9.txt": content, "train/high/1.txt": as_bytes(passage())},
    )
    with pytest.raises(DataError, match=message) as caught:
        read("race", path)
    assert caught.value.path == path / "train/high/9.txt" and caught.value.line
    source = read("race", path, SKIP)
    assert source.train.skipped and message in source.train.skipped[0].reason.replace("\\", "")
    assert len(source.train.records) >= 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b'{"article": "x', "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (bytes(range(32)) * 9, "binary"),
    ],
)
def test_a_member_that_is_no_passage(tmp_path: Path, data: bytes, message: str) -> None:
    path = write_tar(tmp_path / "r.tar", {"high/1.txt": data, "high/2.txt": as_bytes(passage(2))})
    with pytest.raises(DataError, match=message):
        read("race", path)
    source = read("race", path, SKIP)
    assert counts(source) == (2, 0, 0) and len(source.train.skipped) == 1


def test_damaged_and_hostile_archives(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "race.tar.xz", members())
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="damaged or cut short"):
        read("race", path)
    climbing = write_tar(tmp_path / "c.tar", {"../../etc/high/1.txt": as_bytes(passage())})
    with pytest.raises(DataError, match="leads out"):
        read("race", climbing)
    write_tar(tmp_path / "bomb.tar.gz", {"high/1.txt": b" " * (8 << 20)})
    with pytest.raises(DataError, match="times the size"):
        read("race", tmp_path / "bomb.tar.gz")
    empty = write_tar(tmp_path / "e.tar", {"README.md": b"nothing", "._1.txt": b"\0"})
    with pytest.raises(DataError, match="no RACE files here"):
        read("race", empty)
    with pytest.raises(DataError, match="no such file"):
        read("race", tmp_path / "absent.tar")
    with pytest.raises(DataError, match="no such file"):
        read_choices(tmp_path / "absent", STOP, True)


def test_an_archive_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tar(tmp_path / "r.tar", members())

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"cannot read the archive: .*Permission"):
        read("race", path)


def dialogue(**changes: Any) -> list[Any]:
    question = {"question": "Where are they?", "choice": ["home", "a shop", "sea"], "answer": "sea"}
    return [["M: Look, a ship!", "W: And waves."], [question | changes], "7-1"]


def write(path: Path, value: Any) -> Path:
    path.write_bytes(as_bytes(value))
    return path


def test_dream_folder(tmp_path: Path) -> None:
    write(tmp_path / "train.json", [dialogue(), dialogue(answer="home")])
    write(tmp_path / "dev.json", [dialogue()])
    write(tmp_path / "test.json", [dialogue(answer="")])
    for name in ("dream", "choice"):
        source = read(name, tmp_path)
        assert counts(source) == (2, 1, 0)
        first = source.train.records[0]
        assert (first.label, first.id, first.group, first.line) == (2, "7-1#1", "7-1", 1)
        assert first.context == "M: Look, a ship!\nW: And waves."
    assert counts(read("dream", tmp_path, STOP, labelled=False)) == (2, 1, 1)
    assert counts(read("dream", tmp_path / "dev.json")) == (1, 0, 0)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"a": 1}, r"dialogue 1: expected \[turns, questions, id\]"),
        ([["x", 3], [], "1"], "a turn is not a text"),
        ([["x"], ["y"], "1"], "expected an object, got a str"),
        (dialogue(choice="abc"), "must hold a list"),
        (dialogue(choice=["a", 4]), "expected a text, got int"),
        (dialogue(answer="moon"), "'moon' is none of the choices"),
        (dialogue(question=None), "got null"),
    ],
)
def test_a_bad_dialogue_is_named_or_counted(tmp_path: Path, item: Any, message: str) -> None:
    path = write(tmp_path / "dream.json", [item, dialogue()])
    with pytest.raises(DataError, match=message):
        read("dream", path)
    source = read("dream", path, SKIP)
    assert counts(source) == (1, 0, 0) and source.train.skipped[0].line == 1


def test_dream_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected a list of dialogues, got a dict"):
        read("dream", write(tmp_path / "x.json", {"a": []}))
    with pytest.raises(DataError, match="no usable questions"):
        read("dream", write(tmp_path / "y.json", []))
    with pytest.raises(DataError, match=r"no train\.json"):
        read("dream", tmp_path)


ARC_ROWS = (
    "Which is hot?,ice,fire,snow,water,B\n"
    '"Which, if any, flies?",a fish,a bird,a cat,,2\n'
    "What is wet?,water,sand,salt,glass,1\n"
)


def test_arc_tables(tmp_path: Path) -> None:
    (tmp_path / "arc_easy_dev.csv").write_bytes(ARC_ROWS.replace("\n", "\r\n").encode())
    (tmp_path / "arc_challenge_dev.csv").write_text("question,a,b,c,d,answer\n" + ARC_ROWS)
    (tmp_path / "arc_easy_test.csv").write_text(ARC_ROWS)
    source = read_choices(tmp_path, STOP, True)
    assert counts(source) == (6, 0, 3)
    assert [r.label for r in source.train.records] == [1, 1, 0] * 2
    assert [len(r.choices) for r in source.train.records] == [4, 3, 4] * 2
    assert [r.subset for r in source.train.records] == ["challenge"] * 3 + ["easy"] * 3
    assert source.train.records[4].question == "Which, if any, flies?"
    assert counts(read("arc/easy", tmp_path)) == (3, 0, 3)
    assert counts(read("arc/challenge", tmp_path)) == (3, 0, 0)
    assert counts(read("arc", tmp_path / "arc_easy_test.csv")) == (3, 0, 0)
    with pytest.raises(DataError, match="no ARC files in this folder"):
        read("arc", _empty(tmp_path))


def _empty(folder: Path) -> Path:
    path = folder / "empty"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("Which is cold?,ice,fire,sun,lava,E", "answer key 'E' names none of the 4"),
        ("Which is cold?,,,,,3", "all choices are empty"),
        ("Which is cold?,ice,fire,sun,,D", "answer key 'D' names none of the 3"),
        ("Which is cold?,ice,,sun,lava,A", "choice B: is empty"),
        ("Which is cold?,ice,fire,sun,lava,", "the question has no answer"),
    ],
)
def test_a_bad_arc_row(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "arc_easy_train.csv"
    path.write_text(ARC_ROWS + row + "\n")
    with pytest.raises(DataError, match=message) as caught:
        read("arc", path)
    assert (caught.value.path, caught.value.line) == (path, 4)
    source = read("arc", path, SKIP)
    assert counts(source) == (3, 0, 0) and len(source.train.skipped) == 1
    if row[-1] in "ED":
        assert counts(read("arc", path, STOP, labelled=False)) == (4, 0, 0)


def test_an_arc_table_needs_choices(tmp_path: Path) -> None:
    path = tmp_path / "arc_easy_train.csv"
    path.write_text("a,b,A\nc,d,B\n")
    with pytest.raises(DataError, match="3 columns; an ARC table has"):
        read("arc", path)


def nested(key: Any = "B", **changes: Any) -> dict[str, Any]:
    choices = [{"label": x, "text": f"thing {x}"} for x in "ABC"]
    return {
        "id": "q1",
        "question": {"stem": "What is it?", "choices": choices, "question_concept": "thing"},
        "answerKey": key,
    } | changes


def flat(key: Any = "B", **changes: Any) -> dict[str, Any]:
    choices = {"label": ["A", "B", "C"], "text": ["thing A", "thing B", "thing C"]}
    return {"id": "q1", "question": "What is it?", "choices": choices, "answerKey": key} | changes


@pytest.mark.parametrize("make", [nested, flat])
@pytest.mark.parametrize("name", ["commonsense_qa", "choice", "arc"])
def test_labelled_choices(tmp_path: Path, make: Callable[..., dict[str, Any]], name: str) -> None:
    path = tmp_path / "ARC-Easy-Train.jsonl"
    path.write_text("".join(json.dumps(make(key)) + "\n" for key in ("A", "C", "2", 3)))
    source = read(name, path)
    assert [r.label for r in source.train.records] == [0, 2, 1, 2]
    assert source.train.records[0].choices == ("thing A", "thing B", "thing C")
    assert source.train.records[0].subset == ("easy" if name != "commonsense_qa" else "")
    path.write_text(json.dumps(make(None)) + "\n")
    assert [r.label for r in read(name, path, STOP, labelled=False).train.records] == [None]


def test_numeric_labels_name_choices_before_positions_do(tmp_path: Path) -> None:
    row = flat(2, choices={"label": ["2", "1"], "text": ["two", "one"]})
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"answerKey": "1"}) + "\n")
    assert [r.label for r in read("choice", path).train.records] == [0, 1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (flat("Z"), "answer key 'Z' names no choice"),
        (flat(choices={"label": ["A"], "text": ["a", "b"]}), "a label and a text each"),
        (flat(choices={"label": "A", "text": "B"}), "a label and a text each"),
        (flat(choices=["a", "b"]), "a label and a text each"),
        (flat(question=None), "got null"),
        (nested(question={"stem": 4, "choices": []}), "expected a text, got int"),
    ],
)
def test_a_bad_labelled_question(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    path = tmp_path / "train_rand_split.jsonl"
    path.write_text(json.dumps(flat()) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(DataError, match=message) as caught:
        read("commonsense_qa", path)
    assert caught.value.line == 2
    assert len(read("commonsense_qa", tmp_path, SKIP).train.skipped) == 1


def test_commonsense_folders(tmp_path: Path) -> None:
    (tmp_path / "train_rand_split.jsonl").write_text(json.dumps(flat()) + "\n")
    (tmp_path / "dev_rand_split.jsonl").write_text(json.dumps(flat()) + "\n")
    blind = {k: v for k, v in flat().items() if k != "answerKey"}
    (tmp_path / "test_rand_split_no_answers.jsonl").write_text(json.dumps(blind) + "\n")
    assert counts(read("commonsense_qa", tmp_path)) == (1, 1, 0)
    with pytest.raises(DataError, match="no file in this folder is named after a split"):
        read("commonsense_qa", _empty(tmp_path))
    (tmp_path / "no.jsonl").write_text('{"question": "x", "choices": "y"}\n')
    with pytest.raises(DataError, match="this is no CommonsenseQA"):
        read("commonsense_qa", tmp_path / "no.jsonl")


def japanese(number: int = 0, **changes: Any) -> dict[str, Any]:
    choices = {f"choice{i}": word for i, word in enumerate(("海", "山", "川", "森", "空"))}
    return {"q_id": number, "question": "魚が泳ぐ所は？"} | choices | {"label": 2} | changes


def test_jcommonsenseqa(tmp_path: Path) -> None:
    lines = "".join(json.dumps(japanese(i, label=i), ensure_ascii=False) + "\n" for i in range(5))
    (tmp_path / "train-v1.3.json").write_text(lines, encoding="utf-8")
    (tmp_path / "valid-v1.3.json").write_text(lines, encoding="utf-8")
    source = read("jcommonsenseqa", tmp_path)
    assert counts(source) == (5, 5, 0)
    assert [r.label for r in source.train.records] == [0, 1, 2, 3, 4]
    assert source.train.records[3].id == "3"
    (tmp_path / "train-v1.3.json").write_text(json.dumps(japanese(label=5)), encoding="utf-8")
    with pytest.raises(DataError, match="answer 5 names none of the 5 choices"):
        read("jcommonsenseqa", tmp_path)
    (tmp_path / "train-v1.3.json").write_text('{"question": "x"}\n')
    with pytest.raises(DataError, match="this is no JCommonsenseQA: it lacks 'choice0'"):
        read("jcommonsenseqa", tmp_path)


def test_keys_and_groups() -> None:
    assert [position_of_key(key, 4) for key in ("A", " d ", "E", 1, "4", "0", 5, "AB", None, 1.0, "²")] == [
        0, 3, None, 0, 3, None, None, None, None, None, None,
    ]  # fmt: skip
    assert group_of("a passage", "x") == group_of("a passage", "y") != group_of("another", "x")
    assert group_of("  ", "x") == "x"
    assert record_problem("", "q", ["a", "b"]) is None


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        ),
        max_leaves=12,
    ),
    st.sampled_from(sorted(passage())),
)
def test_whatever_a_passage_holds(
    tmp_path_factory: pytest.TempPathFactory, value: Any, key: str
) -> None:
    path = tmp_path_factory.mktemp("race") / "1.txt"
    path.write_text(json.dumps(passage() | {key: value}))
    for labelled in (True, False):
        for options in (STOP, SKIP):
            try:
                source = read("race", path, options, labelled)
            except LitebertError:
                continue
            for record in source.train.records:
                assert 2 <= len(record.choices) <= 26
                assert record.label is None or 0 <= record.label < len(record.choices)
                assert record.id and isinstance(record.group, str)
