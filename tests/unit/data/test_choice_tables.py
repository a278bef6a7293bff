"""Tables of questions: columns by their names, answers as letters, texts and positions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.choices import read_choices
from litebert.data.choices.columns import ChoiceColumns, find_columns
from litebert.data.readers import NamedColumns, ReadOptions
from litebert.data.tables import read_table
from litebert.errors import DataError, LitebertError, SettingsError

STOP = ReadOptions()
SKIP = ReadOptions(on_bad_row="skip")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def labels(path: Path, options: ReadOptions = STOP, labelled: bool = True) -> list[int | None]:
    return [r.label for r in read_choices(path, options, labelled).train.records]


HEADERS = {
    "question,choice0,choice1,choice2,label": ("question", ("choice0", "choice1", "choice2"), False),
    "Question,Option 1,Option 2,Option 3,Answer": (
        "Question", ("Option 1", "Option 2", "Option 3"), True,
    ),
    "stem,A,B,C,answerKey": ("stem", ("A", "B", "C"), False),
    "sent1,ending0,ending1,ending2,gold": (None, ("ending0", "ending1", "ending2"), False),
    "goal,sol1,sol2,sol3,correct": ("goal", ("sol1", "sol2", "sol3"), True),
    "text,opa,opb,opc,cop": ("text", ("opa", "opb", "opc"), False),
    "prompt,option_c,option_b,option_a,key": ("prompt", ("option_a", "option_b", "option_c"), False),
}  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_columns_by_their_names(tmp_path: Path, header: str) -> None:
    question, choices, is_from_one = HEADERS[header]
    table = read_table(
        write(tmp_path / "t.csv", header + "\nwhat?,x,y,z,1\nwho?,u,v,w,2\n"), header=True
    )
    if question is None:
        with pytest.raises(DataError, match="no column looks like a question"):
            find_columns(table)
        columns = find_columns(table, ChoiceColumns(question="sent1"))
    else:
        columns = find_columns(table)
        assert columns.question == question
    assert columns.choices == choices
    assert columns.answer == header.split(",")[-1]
    assert columns.is_from_one is is_from_one


ANSWERS: dict[str, tuple[list[str], list[int]]] = {
    "letters": (["A", "c", "B"], [0, 2, 1]),
    "texts": (["red", "blue", "green"], [0, 2, 1]),
    "from 0": (["0", "2", "1"], [0, 2, 1]),
    "from 1": (["1", "3", "2"], [0, 2, 1]),
    "unclear, so from 0": (["1", "2", "1"], [1, 2, 1]),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_are_understood_together(tmp_path: Path, case: str) -> None:
    answers, expected = ANSWERS[case]
    rows = "".join(f"what {i}?,red,green,blue,{a}\n" for i, a in enumerate(answers))
    path = write(tmp_path / "t.csv", "question,option_a,option_b,option_c,answer\n" + rows)
    assert labels(path) == expected
    numbered = write(tmp_path / "n.csv", "question,option1,option2,option3,answer\n" + rows)
    known = [x - 1 for x in expected] if case.startswith("unclear") else expected
    assert labels(numbered) == known


def test_answers_that_are_numbers_and_choices_that_are_numbers(tmp_path: Path) -> None:
    rows = [{"question": f"{a} + 1?", "choices": [a, a + 1, 99], "answer": a + 1} for a in (10, 20)]
    path = write(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)))
    assert labels(path) == [1, 1]
    assert read_choices(path, STOP, True).train.records[0].choices == ("10", "11", "99")
    floats = [row | {"answer": 2.0} for row in rows]
    path = write(tmp_path / "f.jsonl", "\n".join(map(json.dumps, floats)))
    assert labels(path) == [2, 2]


def test_folders_contexts_ids_and_uneven_choices(tmp_path: Path) -> None:
    header = "id,passage,question,A,B,C,D,label\n"
    write(
        tmp_path / "train.csv",
        header + "7,a text,q1?,x,y,,,A\n8,a text,q2?,x,y,z,w,D\n,other,q3?,x,y,z,,C\n",
    )
    write(tmp_path / "valid.csv", header + "9,,q4?,x,y,,,B\n")
    write(tmp_path / "test.csv", header + "9,,q4?,x,y,,,\n")
    source = read_choices(tmp_path, STOP, True)
    assert source.eval and source.eval.records[0].group == "9" and source.test is None
    train = source.train.records
    assert [len(r.choices) for r in train] == [2, 4, 3] and [r.label for r in train] == [0, 3, 2]
    assert train[0].group == train[1].group != train[2].group
    assert [r.id for r in train] == ["7", "8", "train-4"] and train[0].context == "a text"
    assert source.train.sha256 and "answers are letters" in source.notes[1]


def test_lists_in_parquet_and_in_cells(tmp_path: Path) -> None:
    rows = [{"article": "t", "question": "q?", "options": ["a", "b", "c"], "answer": "C"}] * 2
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert labels(tmp_path / "t.parquet") == [2, 2]
    path = write(
        tmp_path / "t.csv", 'question,choices,label\nq?,"[""a"", ""b""]",1\nr?,"[""a"", ""b""]",0\n'
    )
    assert labels(path) == [1, 0]


def test_columns_as_told(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "frage,eins,zwei,loesung\nwas?,x,y,y\nwer?,x,y,x\n")
    told = NamedColumns(("frage",), "loesung", ("eins", "zwei"))
    assert labels(path, ReadOptions(columns=told)) == [1, 0]
    assert labels(path, ReadOptions(columns=replace(told, is_remembered=True))) == [1, 0]
    with pytest.raises(SettingsError, match="no column 'frag'; did you mean 'frage'"):
        read_choices(path, ReadOptions(columns=NamedColumns(("frag",))), True)
    with pytest.raises(SettingsError, match="no column 'Q'; columns: 'frage'"):
        read_choices(path, ReadOptions(columns=NamedColumns(("Q",))), True)
    with pytest.raises(SettingsError, match="column 'eins' is named twice"):
        read_choices(
            path, ReadOptions(columns=NamedColumns(("frage", "eins"), None, ("eins",))), True
        )
    with pytest.raises(DataError, match="no columns look like choices"):
        read_choices(path, STOP, True)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q?,x,,z,A", "choice B: is empty"),
        ("q?,x,,,A", "1 choices; allowed"),
        (",x,y,z,A", "both empty"),
        ("q?,x,y,z,D", "answer 'D' names none of the 3 choices"),
        ("q?,x,y,z,", "the question has no answer"),
    ],
)
def test_a_bad_row_is_named_or_counted(tmp_path: Path, row: str, message: str) -> None:
    path = write(tmp_path / "t.csv", f"question,A,B,C,label\nq?,x,y,z,A\n{row}\n")
    with pytest.raises(DataError, match=message) as caught:
        read_choices(path, STOP, True)
    assert (caught.value.path, caught.value.line) == (path, 3)
    source = read_choices(path, SKIP, True)
    assert len(source.train.records) == 1 and source.train.skipped[0].line == 3


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ('"[1"', "no JSON list"),
        ("7", "no JSON list|expected a list"),
        ('"{}"', "expected a list of choices, got dict"),
    ],
)
def test_a_cell_that_is_no_list(tmp_path: Path, cell: str, message: str) -> None:
    path = write(tmp_path / "t.csv", f'question,choices,label\nq?,"[""a"",""b""]",1\nr?,{cell},0\n')
    with pytest.raises(DataError, match=message):
        read_choices(path, ReadOptions(columns=NamedColumns(choices=("choices",))), True)


def test_remembered_columns_are_used_where_they_are(tmp_path: Path) -> None:
    known = NamedColumns(("frage", "stelle"), "loesung", ("eins", "zwei"), is_remembered=True)
    other = write(tmp_path / "o.csv", "question,A,B,answer\nq?,x,y,B\n")
    assert labels(other, ReadOptions(columns=known)) == [1], "another file, its own names"
    open_ = write(tmp_path / "p.csv", "frage,stelle,eins,zwei\nwas?,hier,x,y\n")
    (record,) = read_choices(open_, ReadOptions(columns=known), False).train.records
    assert (record.question, record.context, record.choices) == ("was?", "hier", ("x", "y"))
    told = replace(known, is_remembered=False)
    assert read_choices(open_, ReadOptions(columns=told), False).train.records[0].label is None
    with pytest.raises(SettingsError, match="no column 'loesung'"):
        read_choices(open_, ReadOptions(columns=told), True)


def test_columns_that_are_told_make_a_table_of_any_file(tmp_path: Path) -> None:
    """A file that looks like ARC by its name, or holds labelled choices, is read as told."""
    path = write(tmp_path / "arc_easy.csv", "F,a,b,L\nwas?,x,y,b\nwer?,x,y,a\n")
    told = NamedColumns(("F",), "L", ("a", "b"))
    assert labels(path, ReadOptions(columns=told)) == [1, 0]
    nested = {"q": "was?", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "key": "B"}
    path = write(tmp_path / "n.jsonl", json.dumps(nested) + "\n")
    with pytest.raises(DataError, match="expected a list of choices, got dict"):
        read_choices(path, ReadOptions(columns=NamedColumns(("q",), "key", ("choices",))), True)


def test_without_answers_a_table_can_be_predicted(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "question,A,B\nq?,x,y\nr?,x,y\n")
    assert labels(path, STOP, labelled=False) == [None, None]
    with pytest.raises(DataError, match="the question has no answer"):
        labels(path)
    with pytest.raises(
        DataError, match="no usable questions \\(2 left out; the first: the question has"
    ):
        labels(path, SKIP)
    unfit = write(tmp_path / "u.csv", "question,A,B,label\nq?,x,y,Z\n")
    assert labels(unfit, STOP, labelled=False) == [None]
    with pytest.raises(DataError, match="no file in this folder is named after a split"):
        (tmp_path / "e").mkdir()
        read_choices(tmp_path / "e", STOP, True)


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    st.lists(
        st.fixed_dictionaries(
            {"question": VALUE, "choices": VALUE | st.lists(st.text(max_size=3), max_size=5)},
            optional={"label": VALUE, "id": VALUE, "context": VALUE},
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_rows_hold(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = write(tmp_path_factory.mktemp("t") / "t.jsonl", "\n".join(map(json.dumps, rows)))
    for labelled in (True, False):
        for options in (STOP, SKIP):
            try:
                source = read_choices(path, options, labelled)
            except LitebertError:
                continue
            for record in source.train.records:
                assert 2 <= len(record.choices) <= 26 and all(map(str.strip, record.choices))
                assert record.label is None or 0 <= record.label < len(record.choices)
                assert isinstance(record.context, str) and record.id
