"""The commands of the pages on tasks run as they are written, on small files of the same formats."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litebert.cli import app

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to"
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
STEPS = (
    " --seeds 1 --no-baselines --yes --set train.max_steps=2 --set train.threads=1"
    " --set train.guard.enabled=false --set train.precision=fp32"
)
SCRATCH = (
    " --set model.vocab_size=90 --set model.config.hidden_size=16"
    " --set model.config.num_attention_heads=2 --set model.config.num_hidden_layers=1"
)
MORE: dict[str, str] = {
    "learn-from-few-examples": " --seeds 1 --no-baselines --set train.threads=1",
    "run-glue": " --tasks stsb --no-submission" + STEPS.replace(" --yes", ""),
}
"""What is added to the trainings of a page instead of `STEPS`."""
RAN = {
    "answer-questions": 9,
    "learn-from-few-examples": 4,
    "tag-words": 4,
    "embed-and-search": 4,
    "run-glue": 1,
}
"""Page -> commands on it."""
LAKE = "The lake {n} lies north of the mill. In winter it freezes."


def blocks(name: str) -> list[tuple[str, str, str]]:
    return FENCE.findall((PAGES / f"{name}.md").read_text("utf-8"))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an encoder and all files that the pages name."""
    from litebert.checkpoint.folder import save_model
    from litebert.model.albert import AlbertWithHead
    from litebert.model.presets import preset
    from litebert.text.vocabulary import train_vocabulary

    # Drawing takes longer than the trainings, and is tested elsewhere.
    monkeypatch.setattr("litebert.recipes.finetune.job.draw_plots", lambda summary: {})
    monkeypatch.chdir(tmp_path)
    texts = [LAKE.format(n=n) for n in range(9)] + ["Olle keeps bees and Ida paints boats"]
    tokenizer = train_vocabulary(texts * 3, 70, tmp_path / "words")
    config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
        hidden_size=16, embedding_size=8, num_attention_heads=2, intermediate_size=24,
        num_hidden_layers=1, max_position_embeddings=256,
    )  # fmt: skip
    save_model(AlbertWithHead(config, "pretraining").eval(), tmp_path / "my-encoder", tokenizer)
    write_tables(tmp_path)
    write_questions(tmp_path)
    write_tags(tmp_path)
    return tmp_path


def put(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


def write_tables(place: Path) -> None:
    ends = (("works well", "good"), ("came broken", "bad"))
    rows = [f"the lamp {n} {ends[n % 2][0]},{ends[n % 2][1]}" for n in range(60)]
    for name, part in (("few", rows[:16]), ("test", rows[16:40]), ("more", rows[40:])):
        put(place / f"{name}.csv", "text,label\n" + "\n".join(part) + "\n")
    put(place / "reviews.csv", "text,label\n" + "\n".join(rows[:9]) + "\n")
    put(place / "answers.txt", "Send it back.\nWe answer within a day.\n")
    pairs = [f"the lamp {n},a lamp {n},{n % 6}" for n in range(20)]
    put(place / "pairs.csv", "sentence1,sentence2,score\n" + "\n".join(pairs) + "\n")
    head = (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    )
    lines = [f"{n}\tg\tf\ty\t{n}\tn\tn\tA lake {n}\tA pond {n}\t{n % 5}.5\n" for n in range(20)]
    for name in ("train", "dev"):
        put(place / "glue" / "STS-B" / f"{name}.tsv", head + "".join(lines))


def write_questions(place: Path) -> None:
    stories = [LAKE.format(n=n) for n in range(8)]
    articles = {
        version: [
            {"title": f"t{n}", "paragraphs": [{"context": story, "qas": [
                {"id": f"{n}a", "question": "Where does the lake lie?", "is_impossible": False,
                 "answers": [{"text": "north of the mill", "answer_start": story.index("north")}]},
                {"id": f"{n}b", "question": "Who owns it?", "is_impossible": True, "answers": []},
            ][: 2 if version == "v2" else 1]}]}
            for n, story in enumerate(stories)
        ]
        for version in ("v1", "v2")
    }  # fmt: skip
    for name, version in (("dev-v1.1", "v1"), ("new-questions", "v1"), ("train-v2.0", "v2")):
        put(place / f"{name}.json", {"version": version, "data": articles[version]})
    dialogues: list[dict[str, Any]] = []
    for n, story in enumerate(stories):
        answer = {"text": "north of the mill", "answer_start": story.index("north")}
        qa = {"id": f"D{n}_q#0", "question": "Where?", "yesno": "x", "followup": "n",
              "answers": [answer], "orig_answer": answer}  # fmt: skip
        paragraph = {"id": f"D{n}", "context": f"{story} CANNOTANSWER", "qas": [qa]}
        dialogues.append({"title": f"t{n}", "paragraphs": [paragraph]})
    put(place / "quac" / "train_v0.2.json", {"data": dialogues})
    example = next(text for _, name, text in blocks("answer-questions") if name == "bees.json")
    (story,) = json.loads(example)["data"]
    stories_of_page = [story | {"id": f"s{n}"} for n in range(6)]
    put(place / "coqa" / "coqa-train-v1.0.json", {"version": "1.0", "data": stories_of_page})
    for n in range(6):
        passage = {"article": stories[n], "id": f"middle{n}.txt", "answers": ["A"],
                   "questions": ["Where is the lake?"], "options": [["north", "south", "east", "west"]]}  # fmt: skip
        put(place / "race" / "train" / "middle" / f"{n}.txt", passage)


def write_tags(place: Path) -> None:
    sentences = [f"Mira{n} B-PER\nlives O\nin O\nUlm{n} B-LOC\n" for n in range(12)]
    for name in ("esp.train", "esp.testa", "esp.testb"):
        put(place / "conll2002" / name, "\n".join(sentences))
    put(place / "esp.testb", "\n".join(sentences))
    put(place / "new-texts.txt", "Mira lives here.\nUlm is old.\n")
    for name, text in (("seq.in", "fly to rome\nhelp me\n"), ("seq.out", "O O B-city\nO O\n"),
                       ("label", "flight\nhelp\n")):  # fmt: skip
        for part in ("train", "valid"):
            put(place / "snips" / part / name, text * 6)


@pytest.mark.parametrize("name", sorted(RAN))
def test_the_commands_of_a_page_run(name: str, place: Path) -> None:
    outputs: dict[str, str] = {}
    for language, file, text in blocks(name):
        if file:
            put(place / file, text)
        for line in text.splitlines() if language in ("bash", "text", "sh") else ():
            command = line.split(" #")[0].strip()
            if not command.startswith("litebert "):
                continue
            command = re.sub(r"\b(MODEL|ENCODER)\b", "my-encoder", command)
            words = command.split()
            if words[1] in ("train", "glue"):
                command += MORE.get(name, STEPS) + ("" if "my-encoder" in words else SCRATCH)
            done = CliRunner().invoke(app, shlex.split(command)[1:])
            assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception}"
            outputs[line] = done.stdout + done.stderr
    assert len(outputs) == RAN[name]
    if name == "answer-questions":
        said = outputs["litebert predict runs/coqa ask.json"].splitlines()
        rows = [json.loads(row) for row in said if row.startswith("{")]
        assert rows[1]["question"] == "What does Ida paint? | boats | When does she begin?"
        assert all(row["kind"] in ("span", "yes", "no", "unknown") for row in rows)
    if name == "learn-from-few-examples":
        said = next(text for line, text in outputs.items() if " train " in line)
        assert "training  1 x 20 steps of 16 pairs, learning rate 0.0002" in said
        assert "16 examples, at most 8 of a class, are too few for ordinary fine-tuning" in said
