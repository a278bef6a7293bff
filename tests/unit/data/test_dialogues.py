"""QuAC and CoQA files: turns with their history, answers with their places, and broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.dialogues import CANNOT_ANSWER, read_coqa, read_quac
from litebert.data.question_parts import AnswerSpan, Turn
from litebert.data.readers import ReadOptions
from litebert.errors import DataError, LitebertError

SKIP = ReadOptions(on_bad_row="skip")
TEXT = "Mara built a kite of red paper. The wind tore it. She mended it with tape."
STORY = "Olle keeps bees. He sells the honey at the market on Fridays. His sister Ida helps."


def answer(text: str, start: int | None = None) -> dict[str, Any]:
    place = (TEXT + " " + CANNOT_ANSWER).find(text) if start is None else start
    return {"text": text, "answer_start": place}


def quac_qa(number: int, question: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"D_q#{number}", "question": question, "yesno": "x", "followup": "m",
        "answers": [answer(text)], "orig_answer": answer(text),
    } | more  # fmt: skip


def quac(*qas: Any, dialogue: str = "D") -> dict[str, Any]:
    paragraph = {"id": dialogue, "context": f"{TEXT} {CANNOT_ANSWER}", "qas": list(qas)}
    return {
        "data": [
            {"title": "Kite", "section_title": "s", "background": "b", "paragraphs": [paragraph]}
        ]
    }


MADE = quac_qa(0, "What did she build?", "a kite of red paper", followup="y")
OWNER = quac_qa(1, "Who paid?", CANNOT_ANSWER, followup="n")
MENDED = quac_qa(
    2, "Did she mend it?", "She mended it with tape.", yesno="y",
    answers=[answer("She mended it"), answer(CANNOT_ANSWER), answer("tape")],
)  # fmt: skip


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_quac(tmp_path: Path) -> None:
    path = write(tmp_path / "val_v0.2.json", quac(MADE, OWNER, MENDED))
    made, owner, mended = read_quac(path, ReadOptions(), True).train.records
    assert made.context == TEXT and made.group == "D" and made.id == "D_q#0" and made.line == 1
    assert made.reference == AnswerSpan("a kite of red paper", 11, 30)
    assert made.history == () and (made.yesno, made.followup) == ("x", "y")
    assert owner.reference == AnswerSpan(CANNOT_ANSWER, -1, -1) and owner.is_labelled
    assert owner.history == (Turn("What did she build?", "a kite of red paper"),)
    assert mended.history[-1] == Turn("Who paid?", CANNOT_ANSWER) and len(mended.history) == 2
    assert [a.text for a in mended.answers] == ["She mended it", CANNOT_ANSWER, "tape"]
    assert mended.reference is not None and mended.reference.text == "She mended it with tape."


def test_quac_without_labels(tmp_path: Path) -> None:
    bare = [{"question": "What?"}, {"question": "And then?", "id": "z"}]
    path = write(tmp_path / "x.json", quac(*bare))
    first, second = read_quac(path, ReadOptions(), False).train.records
    assert (first.id, second.id) == ("D_q#0", "z") and not first.is_labelled
    assert second.history == (Turn("What?", ""),) and second.answers == ()
    with pytest.raises(DataError, match="there is no answer; an answer or CANNOTANSWER"):
        read_quac(path, ReadOptions(), True)


def test_quac_original_answer_may_lack(tmp_path: Path) -> None:
    value = {key: item for key, item in MADE.items() if key != "orig_answer"}
    (record,) = read_quac(
        write(tmp_path / "x.json", quac(value)), ReadOptions(), True
    ).train.records
    assert record.reference == record.answers[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"question": " "}, "there is no question"),
        ({"question": 3}, "there is no question"),
        ({"yesno": "maybe"}, "yesno is 'maybe'; allowed: y, n, x"),
        ({"followup": "?"}, r"followup is '\?'; allowed: y, m, n"),
        ({"orig_answer": {"text": "the sea", "answer_start": 2}}, "does not occur in the passage"),
        ({"answers": 5}, "answers must be a list"),
        ({"question": "a\x00"}, "NUL"),
        ({"id": "D_q#0"}, "occurs twice"),
    ],
)
def test_a_bad_quac_question_is_named_or_counted(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    path = write(tmp_path / "x.json", quac(MADE, OWNER | change, MENDED))
    with pytest.raises(DataError, match=reason) as error:
        read_quac(path, ReadOptions(), True)
    assert str(error.value).startswith(f"{path}:2: ")
    split = read_quac(path, SKIP, True).train
    assert [q.line for q in split.records] == [1, 3] and [row.line for row in split.skipped] == [2]


def coqa(**more: Any) -> dict[str, Any]:
    questions = ["What does Olle keep?", "Does he sell anything?", "What?", "Who is his wife?"]
    rows = [
        ("bees", 0, 16, STORY[0:16]), ("Yes", 17, 61, STORY[17:61]), ("honey", 16, 61, STORY[16:61]),
        ("unknown", -1, -1, "unknown"),
    ]  # fmt: skip
    story = {
        "source": "wikipedia", "id": "S1", "filename": "f", "story": STORY, "name": "f",
        "questions": [{"input_text": q, "turn_id": n} for n, q in enumerate(questions, 1)],
        "answers": [
            {"input_text": a, "span_start": b, "span_end": c, "span_text": d, "turn_id": n}
            for n, (a, b, c, d) in enumerate(rows, 1)
        ],
        "additional_answers": {
            "0": [{"input_text": a, "turn_id": n} for n, a in enumerate(["Bees", "yes", "the honey", "unknown"], 1)],
            "1": [{"input_text": a, "turn_id": n} for n, a in enumerate(["some bees", "Yes.", "honey"], 1)],
        },
    }  # fmt: skip
    return {"version": "1.0", "data": [story | more]}


def test_coqa(tmp_path: Path) -> None:
    keeps, sells, what, wife = read_coqa(
        write(tmp_path / "x.json", coqa()), ReadOptions(), True
    ).train.records
    assert keeps.answers == ("bees", "Bees", "some bees") and wife.answers == ("unknown", "unknown")
    assert keeps.evidence == AnswerSpan(STORY[:16], 0, 16) and keeps.domain == "wikipedia"
    assert what.evidence == AnswerSpan(STORY[17:61], 17, 61)  # the blank before it is no part
    assert wife.evidence is None and wife.is_labelled
    assert (sells.id, sells.turn, sells.group, sells.line) == ("S1#2", 2, "S1", 2)
    assert what.history == (
        Turn("What does Olle keep?", "bees"),
        Turn("Does he sell anything?", "Yes"),
    )


def test_coqa_evidence_is_looked_for(tmp_path: Path) -> None:
    value = coqa()
    value["data"][0]["answers"][0] |= {
        "span_start": 900,
        "span_end": 901,
        "span_text": " His sister Ida ",
    }
    value["data"][0]["answers"][1] |= {"span_start": True, "span_text": "nowhere"}
    value["data"][0]["answers"][2] |= {"span_start": 16, "span_end": 17, "span_text": 3}
    records = read_coqa(write(tmp_path / "x.json", value), ReadOptions(), True).train.records
    assert [q.evidence and q.evidence.text for q in records] == ["His sister Ida", None, None, None]


def test_coqa_without_labels(tmp_path: Path) -> None:
    value = coqa(answers=[], additional_answers=None)
    path = write(tmp_path / "x.json", value)
    records = read_coqa(path, ReadOptions(), False).train.records
    assert len(records) == 4 and not any(q.is_labelled for q in records)
    assert records[3].history[-1] == Turn("What?", "")
    with pytest.raises(DataError, match="there is no answer; a turn needs one"):
        read_coqa(path, ReadOptions(), True)


def test_stories_without_what_makes_them(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for change, reason in (
        ({"story": 5}, "no story of text"),
        ({"questions": []}, "without questions"),
    ):
        with pytest.raises(DataError, match=reason):
            read_coqa(write(path, coqa(**change)), ReadOptions(), True)
    value = quac(MADE)
    value["data"][0]["paragraphs"][0] |= {"context": None}
    with pytest.raises(DataError, match="no context of text"):
        read_quac(write(path, value), ReadOptions(), True)
    with pytest.raises(DataError, match="a dialogue without qas"):
        read_quac(write(path, quac()), ReadOptions(), True)
    with pytest.raises(DataError, match=r"no usable questions \(1 skipped; the first: .*no story"):
        read_coqa(write(path, coqa(story=5)), SKIP, True)


def test_folders_of_both(tmp_path: Path) -> None:
    write(tmp_path / "train_v0.2.json", quac(MADE))
    write(tmp_path / "val_v0.2.json", quac(OWNER))
    source = read_quac(tmp_path, ReadOptions(), True)
    assert source.eval is not None and source.eval.records[0].id == "D_q#1"
    other = tmp_path / "coqa"
    other.mkdir()
    write(other / "coqa-train-v1.0.json", coqa())
    write(other / "coqa-dev-v1.0.json", coqa(id="S2"))
    found = read_coqa(other, ReadOptions(), True)
    assert found.eval is not None and found.eval.records[0].group == "S2"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just(TEXT),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["data", "paragraphs", "context", "qas", "question", "answers", "orig_answer", "text",
                         "id", "story", "questions", "input_text", "span_start", "span_end", "span_text",
                         "additional_answers", "yesno"]), inner, max_size=6),
    max_leaves=12,
)  # fmt: skip


@given(value=VALUES, labelled=st.booleans())
def test_whatever_json_says_no_traceback(
    tmp_path_factory: pytest.TempPathFactory, value: Any, labelled: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    for read in (read_quac, read_coqa):
        for options in (SKIP, ReadOptions()):
            try:
                records = read(path, options, labelled).train.records
            except LitebertError:
                continue
            assert all(q.question.strip() and q.id for q in records)


def test_the_real_sample(shared: Path) -> None:
    folder = shared / "data/quac_sample"
    with pytest.raises(DataError, match="occurs twice"):
        read_quac(folder, ReadOptions(), True)  # the same dialogue stands there twice
    split = read_quac(folder, SKIP, True).train
    assert len(split.records) == 6 and len(split.skipped) == 6
    assert all(CANNOT_ANSWER not in q.context for q in split.records)
    assert [len(q.history) for q in split.records] == list(range(6))
    for q in split.records:
        for span in q.answers:
            assert q.context[span.start : span.end] == span.text or span.text == CANNOT_ANSWER
