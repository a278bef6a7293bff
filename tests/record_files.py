"""A small file of every kind of records, in the format in which it is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["FILES", "LAKE"]

LAKE = "The lake lies north of the mill. In winter the lake freezes, and the mill stands still."
END = "CANNOTANSWER"


def squad(folder: Path, *, impossible: bool) -> Path:
    qas: list[dict[str, Any]] = [
        {"id": "a", "question": "Where does the lake lie?",
         "answers": [{"text": "north of the mill", "answer_start": 14}]},
        {"id": "b", "question": "When does it freeze?",
         "answers": [{"text": "In winter", "answer_start": 33}]},
    ]  # fmt: skip
    if impossible:
        qas = [q | {"is_impossible": False} for q in qas]
        qas.append({"id": "c", "question": "Who owns it?", "answers": [], "is_impossible": True})
    paragraph = {"context": LAKE, "qas": qas}
    value = {"version": "1", "data": [{"title": "Lake", "paragraphs": [paragraph]}]}
    return write(folder / "questions.json", json.dumps(value))


def quac(folder: Path) -> Path:
    def question(number: int, text: str, words: str) -> dict[str, Any]:
        answer = {"text": words, "answer_start": f"{LAKE} {END}".index(words)}
        return {"id": f"D_q#{number}", "question": text, "yesno": "x", "followup": "m",
                "answers": [answer], "orig_answer": answer}  # fmt: skip

    qas = [question(0, "Where is the lake?", "north of the mill"), question(1, "Who owns it?", END)]
    paragraph = {"id": "D", "context": f"{LAKE} {END}", "qas": qas}
    entry = {"title": "Lake", "section_title": "s", "background": "b", "paragraphs": [paragraph]}
    return write(folder / "val_v0.2.json", json.dumps({"data": [entry]}))


def coqa(folder: Path) -> Path:
    words = "north of the mill"
    answers = [
        {"input_text": words, "span_text": words, "span_start": LAKE.index(words),
         "span_end": LAKE.index(words) + len(words), "turn_id": 1},
        {"input_text": "yes", "span_text": "the lake freezes", "span_start": 43, "span_end": 59,
         "turn_id": 2},
    ]  # fmt: skip
    questions = [
        {"input_text": "Where is the lake?", "turn_id": 1},
        {"input_text": "Does it freeze?", "turn_id": 2},
    ]
    story = {"id": "s1", "source": "own", "story": LAKE, "questions": questions, "answers": answers}
    return write(folder / "coqa.json", json.dumps({"version": "1.0", "data": [story]}))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def tagged(folder: Path) -> Path:
    return write(folder / "a.conll", "Mira B-PER\nlives O\nin O\nUlm B-LOC\n\nrain O\nfell O\n" * 3)


def slots(folder: Path) -> Path:
    for name, text in (
        ("seq.in", "fly to rome\nhelp me\n" * 3), ("seq.out", "O O B-city\nO O\n" * 3),
        ("label", "flight\nhelp\n" * 3),
    ):  # fmt: skip
        write(folder / name, text)
    return folder


def race(folder: Path) -> Path:
    for level in ("middle", "high"):
        passage = {
            "article": LAKE, "id": f"{level}1.txt", "answers": ["A", "D"],
            "questions": ["Where is the lake?", "In winter the lake _ ."],
            "options": [["north", "south", "east", "west"], ["burns", "sings", "grows", "freezes"]],
        }  # fmt: skip
        write(folder / "train" / level / "1.txt", json.dumps(passage))
    return folder


def dream(folder: Path) -> Path:
    question = {"question": "Where are they?", "choice": ["mill", "sea", "hut"], "answer": "mill"}
    value = [[["M: Is this the mill?", "W: It is."], [question], "1-1"]]
    return write(folder / "dev.json", json.dumps(value * 2))


def arc(folder: Path) -> Path:
    rows = [
        {"id": f"Q{n}", "answerKey": "B",
         "question": {"stem": "What freezes?", "choices": [{"text": "fire", "label": "A"},
                                                            {"text": "water", "label": "B"}]}}
        for n in range(3)
    ]  # fmt: skip
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    write(folder / "ARC-Easy" / "ARC-Easy-Train.jsonl", lines)
    write(folder / "ARC-Challenge" / "ARC-Challenge-Train.jsonl", lines)
    return folder


def commonsense(folder: Path) -> Path:
    choices = [{"label": label, "text": f"thing {label}"} for label in "ABCDE"]
    row = {"answerKey": "C", "id": "1", "question": {"stem": "What is it?", "choices": choices}}
    return write(folder / "train_rand_split.jsonl", (json.dumps(row) + "\n") * 2)


def japanese(folder: Path) -> Path:
    row = {"q_id": 1, "question": "湖はどこ", "label": 2} | {
        f"choice{i}": f"所{i}" for i in range(5)
    }
    return write(folder / "train-v1.3.json", (json.dumps(row, ensure_ascii=False) + "\n") * 2)


def table(folder: Path) -> Path:
    row = {"question": "How is rain?", "choices": ["wet", "dry"], "answer": 0}
    return write(folder / "a.jsonl", (json.dumps(row) + "\n") * 3)


def pairs(folder: Path) -> Path:
    rows = "a kettle sings,a pot sings,4.5\nrain falls,the sun shines,0.5\nice melts,ice thaws,4\n"
    return write(folder / "pairs.csv", "sentence1,sentence2,score\n" + rows)


def stsb(folder: Path) -> Path:
    head = (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    )
    rows = "".join(f"{n}\tg\tf\ty\t{n}\tn\tn\tA lake {n}\tA pond {n}\t{n}.5\n" for n in range(4))
    for name in ("train", "dev"):
        write(folder / f"{name}.tsv", head + rows)
    return folder


def sick(folder: Path) -> Path:
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    rows = "".join(f"{n}\tA lake {n}\tA pond {n}\t{n + 1}.0\tNEUTRAL\n" for n in range(4))
    return write(folder / "SICK_train.txt", head + rows)


def jsts(folder: Path) -> Path:
    row = {"sentence_pair_id": "1", "sentence1": "湖です", "sentence2": "池です", "label": 3.4}
    lines = (json.dumps(row | {"label": n + 0.5}, ensure_ascii=False) for n in range(4))
    return write(folder / "train-v1.3.json", "\n".join(lines) + "\n")


FILES: dict[str, Any] = {
    "squad": lambda f: squad(f, impossible=False),
    "squad_v2": lambda f: squad(f, impossible=True),
    "quac": quac,
    "coqa": coqa,
    "tagging": tagged,
    "intent_slots": slots,
    "race": race,
    "race/middle": race,
    "race/high": race,
    "dream": dream,
    "arc": arc,
    "arc/easy": arc,
    "arc/challenge": arc,
    "commonsense_qa": commonsense,
    "jcommonsenseqa": japanese,
    "choice": table,
    "similarity": pairs,
    "stsb": stsb,
    "sick": sick,
    "jsts": jsts,
}
"""For each registered kind: writes a small file of its own format."""
