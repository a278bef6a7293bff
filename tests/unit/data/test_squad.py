"""SQuAD files: every layout in use, answers found in their passages, and files that are broken."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.question_parts import AnswerSpan, locate
from litebert.data.readers import ReadOptions
from litebert.data.records import split_records
from litebert.data.squad import read_squad
from litebert.errors import DataError, LitebertError

SKIP = ReadOptions(on_bad_row="skip")
LAKE = "The lake lies north of the mill. In winter the lake freezes, and the mill stands still."
BAKER = "Ada bakes bread at dawn.\r\nHer  brother sells it."


def qa(
    name: str, question: str, answers: list[tuple[str, int]] | None, **more: Any
) -> dict[str, Any]:
    found = {"id": name, "question": question} | more
    if answers is not None:
        found["answers"] = [{"text": text, "answer_start": start} for text, start in answers]
    return found


def document(*qas: dict[str, Any], context: str = LAKE, title: str = "Lake") -> dict[str, Any]:
    return {
        "version": "v2.0",
        "data": [{"title": title, "paragraphs": [{"context": context, "qas": list(qas)}]}],
    }


def write(path: Path, value: Any, encoding: str = "utf-8") -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding=encoding)
    return path


WHERE = qa("q1", "Where does the lake lie?", [("north of the mill", 14)])
WHEN = qa("q2", "When does it freeze?", [("winter", 36), ("In winter", 33)], is_impossible=False)
WHO = qa(
    "q3",
    "Who owns it?",
    [],
    is_impossible=True,
    plausible_answers=[{"text": "mill", "answer_start": 27}],
)


def test_published_layout(tmp_path: Path) -> None:
    path = write(tmp_path / "some.json", document(WHERE, WHEN, WHO))
    source = read_squad(path, ReadOptions(), True)
    where, when, who = source.train.records
    assert where.answers == (AnswerSpan("north of the mill", 14, 31),)
    assert where.context[14:31] == "north of the mill"
    assert [a.text for a in when.answers] == ["winter", "In winter"]
    assert who.is_impossible and who.is_labelled and not who.answers
    assert not where.is_impossible and where.group == "Lake" and where.path == path
    assert [q.line for q in source.train.records] == [1, 2, 3]
    assert source.eval is None and source.test is None
    assert source.notes == ("1 of 3 questions have no answer",)
    assert len(source.train.sha256) == 64


@pytest.mark.parametrize("form", ["lists", "list", "single"])
def test_flat_rows(tmp_path: Path, form: str) -> None:
    answers: Any = {"text": ["winter"], "answer_start": [36]}
    if form == "list":
        answers = ["winter"]
    if form == "single":
        answers = {"text": "winter", "answer_start": 36}
    row = {"id": "a", "title": "T", "context": LAKE, "question": "When?", "answers": answers}
    none = row | {"id": "b", "answers": {"text": [], "answer_start": []}}
    path = write(tmp_path / "rows.jsonl", f"{json.dumps(row)}\n\n{json.dumps(none)}\n")
    first, second = read_squad(path, ReadOptions(), True).train.records
    assert first.answers == (AnswerSpan("winter", 36, 42),)
    assert second.is_impossible and (first.line, second.line) == (1, 3)
    # The same as a list, as an object with the list, and told by the format alone.
    for value in ([row, none], {"data": [row, none]}):
        records = read_squad(write(tmp_path / "x.json", value), ReadOptions(), True).train.records
        assert [q.answers for q in records] == [first.answers, ()]
        assert [q.line for q in records] == [1, 2]
    lines = write(tmp_path / "lines.json", f"{json.dumps(row)}\n{json.dumps(none)}")
    assert len(read_squad(lines, ReadOptions(), True).train.records) == 2
    told = write(tmp_path / "one.txt", json.dumps(row))
    assert len(read_squad(told, ReadOptions(format="jsonl"), True).train.records) == 1
    with pytest.raises(DataError, match="Extra data"):
        read_squad(lines, ReadOptions(format="json"), True)


def test_lines_of_articles_and_of_passages(tmp_path: Path) -> None:
    article = document(WHERE)["data"][0]
    passage = {"context": LAKE, "qas": [WHEN, WHO]}
    path = write(tmp_path / "x.jsonl", f"{json.dumps(article)}\n{json.dumps(passage)}\n")
    records = read_squad(path, ReadOptions(), True).train.records
    assert [(q.id, q.line) for q in records] == [("q1", 1), ("q2", 2), ("q3", 2)]
    assert records[1].group == records[2].group != "Lake"


def test_groups_are_articles_or_passages(tmp_path: Path) -> None:
    value = document(WHERE)
    value["data"] += document(qa("q9", "Who bakes?", [("Ada", 0)]), context=BAKER, title="")["data"]
    records = read_squad(write(tmp_path / "x.json", value), ReadOptions(), True).train.records
    train, held = split_records(records, 0.5, 0)
    assert {q.group for q in train}.isdisjoint(q.group for q in held) and len(train) == len(
        held
    ) == 1


@pytest.mark.parametrize(
    ("text", "start", "place"),
    [
        ("the mill", 23, (23, 31)),
        ("the mill", 24, (23, 31)),  # off by one
        ("the mill", 70, (65, 73)),  # the nearer of two
        ("the lake", -1, (43, 51)),  # not told
        ("the lake", 10**30, (43, 51)),
        ("north  of\nthe mill", 0, (14, 31)),  # other white space
        ("sea", 3, (-1, -1)),
        ("  ", 3, (-1, -1)),
        ("", 0, (-1, -1)),
    ],
)
def test_answers_are_found(text: str, start: int, place: tuple[int, int]) -> None:
    span = locate(LAKE, text, start)
    assert (span.start, span.end) == place and span.text == text
    assert span.is_located == (place[0] >= 0)


@given(st.text("ab .\n", max_size=30), st.text("ab .\n", max_size=5), st.integers(-5, 40))
def test_the_nearest_occurrence_is_found(context: str, text: str, start: int) -> None:
    span = locate(context, text, start)
    places = [i for i in range(len(context)) if text and context.startswith(text, i)]
    if text.strip() and places:
        assert context[span.start : span.end] == text
        wanted = min(abs(i - max(start, 0)) for i in places)
        assert abs(span.start - max(start, 0)) == wanted or start > len(context)
    elif span.is_located:
        assert context[span.start : span.end].split() == text.split()


def test_odd_white_space_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    questions = (
        qa("a", "Who sells it?", [("Her brother", 26)]), qa("b", "When?", [("dawn.\nHer", 19)])
    )  # fmt: skip
    text = json.dumps(document(*questions, context=BAKER), indent=1).replace("\n", "\r\n")
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    a, b = read_squad(path, ReadOptions(), True).train.records
    assert a.context == BAKER and BAKER[a.answers[0].start : a.answers[0].end] == "Her  brother"
    assert BAKER[b.answers[0].start : b.answers[0].end] == "dawn.\r\nHer"
    path.write_bytes(
        json.dumps(document(WHERE), ensure_ascii=False).replace("mill", "caf\xe9").encode("latin-1")
    )
    assert read_squad(path, ReadOptions(), False).train.records[0].context.count("caf\xe9") == 2


def test_moved_answers_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", document(qa("a", "Where?", [("the mill", 60)]), WHEN))
    source = read_squad(path, ReadOptions(), True)
    assert source.notes == (
        "1 answers do not stand at their answer_start; the nearest occurrence was taken",
    )


def test_one_located_answer_is_enough(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.json", document(qa("a", "Where?", [("nowhere", 0), ("the mill", 23)]))
    )
    (record,) = read_squad(path, ReadOptions(), True).train.records
    assert [a.is_located for a in record.answers] == [False, True]


BAD = {
    "no text": (qa("x", "?", None) | {"answers": [{"text": 3, "answer_start": 0}]}, "answers must be a list"),
    "text start": (qa("x", "?", None) | {"answers": [{"text": "mill", "answer_start": "27"}]}, "answers must be"),
    "true start": (qa("x", "?", None) | {"answers": [{"text": "mill", "answer_start": True}]}, "answers must be"),
    "a number": (qa("x", "?", None) | {"answers": 7}, "answers must be"),
    "uneven": (qa("x", "?", None) | {"answers": {"text": ["a"], "answer_start": []}}, "answers must be"),
    "absent": (qa("x", "Where?", None), "answers are missing"),
    "elsewhere": (qa("x", "Where?", [("the sea", 3)]), "does not occur in the passage"),
    "empty answer": (qa("x", "Where?", [("", 3)]), "does not occur in the passage"),
    "empty question": (qa("x", " \n", [("mill", 27)]), "the question is empty"),
    "no question": ({"id": "x", "answers": []}, "question is missing, expected a text"),
    "list question": ({"id": "x", "question": ["a"], "answers": []}, "question is a list"),
    "flag": (qa("x", "Where?", [], is_impossible="yes"), "is_impossible is 'yes'"),
    "contradiction": (qa("x", "Where?", [("mill", 27)], is_impossible=True), "but there are answers"),
    "other contradiction": (qa("x", "Where?", [], is_impossible=False), "but there is no answer"),
    "twice": (qa("q1", "Again?", [("mill", 27)]), "occurs twice"),
    "NUL": (qa("x", "Wh\x00ere?", [("mill", 27)]), "NUL character"),
    "surrogate": (qa("x", "Where?", [("mi\ud800ll", 27)]), "lone surrogate"),
    "no object": ("Where?", "an object of named values, got a text"),
    "null": (None, "an object of named values, got missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_question_is_named_or_counted(tmp_path: Path, name: str) -> None:
    value, reason = BAD[name]
    path = write(tmp_path / "x.json", document(WHERE, value, WHEN))
    with pytest.raises(DataError, match=reason) as error:
        read_squad(path, ReadOptions(), True)
    assert str(error.value).startswith(f"{path}:2: ")
    split = read_squad(path, SKIP, True).train
    assert [q.id for q in split.records] == ["q1", "q2"]
    assert [(row.line, row.path) for row in split.skipped] == [(2, path)]


def test_a_passage_that_is_none(tmp_path: Path) -> None:
    value = document(WHERE)
    value["data"][0]["paragraphs"] += [{"qas": [WHEN, WHO]}, 7, {"context": LAKE, "qas": 3}]
    value["data"] += [5, {"paragraphs": None}, {}]
    path = write(tmp_path / "x.json", value)
    split = read_squad(path, SKIP, True).train
    assert [q.id for q in split.records] == ["q1"]
    assert [row.line for row in split.skipped] == [2, 3, 4, 5, 6, 7, 8]


def test_empty_passages(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", document(WHERE))
    value = document(qa("e", "Is there any?", [], is_impossible=True), context="")
    value["data"] += document(WHERE)["data"]
    records = read_squad(write(path, value), ReadOptions(), True).train.records
    assert records[0].context == "" and records[0].is_impossible
    write(path, document(qa("e", "Any?", [("x", 0)]), context=""))
    with pytest.raises(DataError, match="does not occur"):
        read_squad(path, ReadOptions(), True)


def test_without_labels(tmp_path: Path) -> None:
    questions = (
        qa("a", "Where?", []), {"question": "When?"}, qa("", "Who?", [("the sea", 1)]),
        qa("c", "Why?", [], is_impossible=True), {"question": "How?", "id": 12},
    )  # fmt: skip
    path = write(tmp_path / "x.json", document(*questions))
    records = read_squad(path, ReadOptions(), False).train.records
    assert [q.id for q in records] == ["a", "#2", "#3", "c", "12"]
    assert [q.is_labelled for q in records] == [False, False, True, True, False]
    path = write(path, document(qa("a", "Where?", []), qa("b", "When?", [])))
    assert len(read_squad(path, ReadOptions(), False).train.records) == 2
    with pytest.raises(DataError, match="none of the 2 questions has an answer: they are withheld"):
        read_squad(path, ReadOptions(), True)


def test_folders(tmp_path: Path) -> None:
    write(tmp_path / "train-v2.0.json", document(WHERE, WHO))
    write(tmp_path / "dev-v2.0.json", document(WHEN, WHO))
    write(tmp_path / "readme.txt", "no data")
    source = read_squad(tmp_path, ReadOptions(), True)
    assert [q.id for q in source.train.records] == ["q1", "q3"]
    assert source.eval is not None and [q.id for q in source.eval.records] == ["q2", "q3"]
    assert source.test is None and source.notes[0] == "train: train-v2.0.json"
    write(tmp_path / "test-v2.0.json", document(qa("t", "Where?", [])))
    source = read_squad(tmp_path, ReadOptions(), True)
    assert source.test is None and source.notes[-1].endswith("withheld, so it is left out")
    write(tmp_path / "test-v2.0.json", document(WHERE))
    source = read_squad(tmp_path, ReadOptions(), True)
    assert source.test is not None and len(source.test.records) == 1
    write(tmp_path / "validation.jsonl", json.dumps(WHERE))
    with pytest.raises(DataError, match="2 files could be for eval"):
        read_squad(tmp_path, ReadOptions(), True)


def test_folders_that_do_not_say_what_is_what(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.json"):
        read_squad(tmp_path, ReadOptions(), True)
    write(tmp_path / "only.json", document(WHERE))
    assert len(read_squad(tmp_path, ReadOptions(), True).train.records) == 1
    write(tmp_path / "other.json", document(WHERE))
    with pytest.raises(DataError, match="no file is named for training"):
        read_squad(tmp_path, ReadOptions(), True)


def test_compressed_files(tmp_path: Path) -> None:
    text = json.dumps(document(WHERE))
    packed = tmp_path / "x.json.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert len(read_squad(packed, ReadOptions(), True).train.records) == 1
    archive = tmp_path / "x.json.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.json", text)
        file.writestr("__MACOSX/._x.json", "junk")
        file.writestr("readme.txt", "junk")
    assert len(read_squad(archive, ReadOptions(), True).train.records) == 1
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("y.json", text)
    with pytest.raises(DataError, match="holds 2 JSON files"):
        read_squad(archive, ReadOptions(), True)


def test_hostile_archives(tmp_path: Path) -> None:
    archive = tmp_path / "x.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.json", "[" * (64 << 20))
    with pytest.raises(DataError, match="become more than"):
        read_squad(archive, ReadOptions(), True)
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match="damaged or encrypted"):
        read_squad(archive, ReadOptions(), True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.json", "")
    with pytest.raises(DataError, match="empty after decompression"):
        read_squad(archive, ReadOptions(), True)


HOSTILE = {
    "empty": b"", "blank": b" \n", "null": b"null", "number": b"17", "word": b'"squad"', "list": b"[]",
    "object": b"{}", "cut": b'{"data": [{"title": "x", "para', "deep": b"[" * 100_000,
    "binary": bytes(range(256)) * 8, "huge": b'{"data": 1' + b"0" * 10_000 + b"}",
    "twice": b'{"data": [], "data": []}', "nothing": b'{"data": [{"paragraphs": []}]}',
    "infinite": b'{"data": [NaN, Infinity]}', "lines": b'{"a": 1}\n{"a": 2\n[3]\n',
    "strings": b'{"data": ["a", {"paragraphs": ["b", {"qas": ["c"]}]}]}',
}  # fmt: skip


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_words(tmp_path: Path, name: str, labelled: bool) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(HOSTILE[name])
    for options in (ReadOptions(), SKIP):
        with pytest.raises(LitebertError):
            read_squad(path, options, labelled)
    with pytest.raises(DataError, match="no such file"):
        read_squad(tmp_path / "absent.json", ReadOptions(), labelled)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from([LAKE, "mill"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["data", "paragraphs", "context", "qas", "question", "answers", "text",
                         "answer_start", "id", "title", "is_impossible"]), inner, max_size=6),
    max_leaves=12,
)  # fmt: skip


@given(value=VALUES, labelled=st.booleans())
def test_whatever_json_says_no_traceback(
    tmp_path_factory: pytest.TempPathFactory, value: Any, labelled: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        split = read_squad(path, SKIP, labelled).train
    except LitebertError:
        return
    assert all(q.question.strip() and q.id for q in split.records)


def test_real_files(shared: Path) -> None:
    data = shared / "data"
    one = read_squad(data / "squad/dev-v1.1.json.zip", ReadOptions(), True).train
    assert len(one.records) == 10570 and len({q.group for q in one.records}) == 48
    assert len({q.context for q in one.records}) == 2067 and not one.skipped
    assert all(a.is_located for q in one.records for a in q.answers)
    two = read_squad(data / "squad/cs224n-dev-v2.0.json", ReadOptions(), True)
    assert len(two.train.records) == 6078
    assert sum(q.is_impossible for q in two.train.records) == 3168
    with pytest.raises(DataError, match="withheld"):
        read_squad(data / "squad/cs224n-test-v2.0.json", ReadOptions(), True)
    assert (
        len(read_squad(data / "squad/cs224n-test-v2.0.json", ReadOptions(), False).train.records)
        == 5915
    )
    for language in ("en", "de", "es", "zh", "ar", "hi", "ru"):
        records = read_squad(
            data / f"xquad/xquad.{language}.json", ReadOptions(), True
        ).train.records
        assert len(records) == 1190
        assert all(q.context[a.start : a.end] == a.text for q in records for a in q.answers)
    assert len(read_squad(data / "jglue/jsquad-v1.3", ReadOptions(), True).train.records) == 4442


def mrqa(*passages: tuple[str, list[dict[str, Any]]], header: bool = True) -> str:
    """Original passages in the format of MRQA 2019: a header, then a passage with its questions a line."""
    lines: list[dict[str, Any]] = [{"header": {"dataset": "Lakes", "split": "train"}}] * header
    lines += [
        {"id": "", "context": context, "context_tokens": [["The", 0]], "qas": qas}
        for context, qas in passages
    ]
    return "\n".join(json.dumps(line) for line in lines) + "\n"


def asked(name: str, answers: list[str], spans: Any) -> dict[str, Any]:
    return {
        "id": "", "qid": name, "question": "What is it?", "question_tokens": [["What", 0]],
        "answers": answers,
        "detected_answers": [{"text": t, "char_spans": s, "token_spans": [[0, 0]]} for t, s in spans],
    }  # fmt: skip


def test_mrqa_lines_with_a_header(tmp_path: Path) -> None:
    lake = [
        asked("a", ["the mill"], [("the mill", [[23, 30], [65, 72]])]),
        asked("b", ["Winter", "cold season"], [("Winter", [[36, 41]])]),
    ]
    text = mrqa((LAKE, lake), (BAKER, [asked("c", ["dawn"], [("dawn", [[19, 22]])])]))
    packed = tmp_path / "Lakes.jsonl.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    plain = write(tmp_path / "lakes.json", text)
    for path in (packed, plain):
        records = read_squad(path, ReadOptions(), True).train.records
        assert [(r.id, r.line, r.is_impossible) for r in records] == [
            ("a", 2, False), ("b", 2, False), ("c", 3, False)
        ]  # fmt: skip
        assert [(a.text, a.start, a.end) for a in records[0].answers] == [
            ("the mill", 23, 31), ("the mill", 65, 73)
        ]  # fmt: skip
        assert [(a.text, a.start) for a in records[1].answers] == [
            ("winter", 36),
            ("cold season", -1),
        ]
        assert records[0].group == records[1].group != records[2].group
    assert len(read_squad(packed, ReadOptions(), False).train.records) == 3
    with pytest.raises(DataError, match="no usable questions"):
        read_squad(write(tmp_path / "h.jsonl", mrqa()), ReadOptions(), True)


@pytest.mark.parametrize(
    "spans",
    [
        None,
        [],
        "x",
        [[5]],
        [[5, 4]],
        [[-1, 3]],
        [[0, 500]],
        [[True, 3]],
        [[0, 3.5]],
        [5, 6],
        {"a": 1},
    ],
)
def test_char_spans_that_are_none(tmp_path: Path, spans: Any) -> None:
    good = asked("a", ["winter"], [("winter", [[36, 41]])])
    path = write(
        tmp_path / "t.jsonl", mrqa((LAKE, [good]), (LAKE, [asked("b", ["x"], [("x", spans)])]))
    )
    with pytest.raises(
        DataError, match=r"t\.jsonl:3.*char_spans, lists of \[first, last\] within the 87"
    ):
        read_squad(path, ReadOptions(), True)
    source = read_squad(path, SKIP, True)
    assert [r.id for r in source.train.records] == ["a"] and len(source.train.skipped) == 1


def test_questions_of_one_line_without_names_are_told_apart(tmp_path: Path) -> None:
    qas = [asked("", ["winter"], [("winter", [[36, 41]])]) for _ in range(3)]
    path = write(tmp_path / "t.jsonl", mrqa((LAKE, qas)))
    assert [r.id for r in read_squad(path, ReadOptions(), True).train.records] == [
        "#2",
        "#2.2",
        "#2.3",
    ]
