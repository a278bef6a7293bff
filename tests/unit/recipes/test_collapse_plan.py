"""Ways in which fine-tuning is known to fail without a word: said before training begins.

Each test rebuilds one kind of failure that people reported, at the smallest size.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.recipes.finetune.hazards import advice
from litebert.recipes.finetune.run import new_model
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import AnyPlan, make_plan
from litebert.recipes.loading import load
from litebert.settings import build_settings

CYRILLIC = ("лампа светит тихо", "чайник снова сломан", "книга лежит дома", "стул новый и прочный")


def write(path: Path, texts: list[str], labels: list[str] | None = None) -> Path:
    names = labels or [("good", "bad")[i % 2] for i in range(len(texts))]
    rows = [json.dumps({"text": t, "label": n}) for t, n in zip(texts, names, strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def english(count: int = 80) -> list[str]:
    return [
        f"the lamp number {i} is {'fine' if i % 2 else 'broken'} and we keep it"
        for i in range(count)
    ]


def plan_of(path: Path, **more: Any) -> AnyPlan:
    data = {"train": str(path)} | more.pop("data", {})
    values = {"data": data, "model": {"source": "tiny", "vocab_size": 100}} | more
    values["train"] = {"epochs": 20.0} | values.get("train", {})
    return make_plan(build_settings(FinetuneSettings, values))


def warned(plan: AnyPlan) -> str:
    text = "\n".join(plan.warnings)
    assert all(f"warning   {warning}" in plan.describe() for warning in plan.warnings)
    return text


def test_a_sound_plan_warns_of_nothing(tmp_path: Path) -> None:
    assert warned(plan_of(write(tmp_path / "t.jsonl", english()))) == ""


def test_a_maximum_length_that_was_left_over_from_a_test(tmp_path: Path) -> None:
    """google-research/albert#18: MNLI at chance with a length of 4."""
    path = write(tmp_path / "t.jsonl", english())
    with pytest.raises(SettingsError, match="max_length"):
        plan_of(path, data={"max_length": 4})
    plan = plan_of(path, data={"max_length": 8})
    assert "100% of the training texts are cut at 8 tokens" in warned(plan)
    assert "--max-length, up to 512" in warned(plan)


def test_a_length_that_cuts_questions_with_choices(tmp_path: Path) -> None:
    rows = [
        {"question": f"What is said of lamp {i}, the one in the hall, after all this rain?",
         "choices": [f"it is fine {i}", f"it is broken {i}"], "answer": i % 2}
        for i in range(60)
    ]  # fmt: skip
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    plan = plan_of(path, data={"task": "choice", "max_length": 12})
    assert "100% of the training texts are cut at 12 tokens" in warned(plan)
    assert "cut" not in warned(plan_of(path, data={"task": "choice"}))


def test_three_steps(tmp_path: Path) -> None:
    """google-research/albert#25: num_train_steps=3, every answer empty."""
    path = write(tmp_path / "t.jsonl", english())
    assert "3 optimizer steps in all are too few" in warned(plan_of(path, train={"max_steps": 3}))
    few = plan_of(path, train={"max_steps": 40, "batch_size": 1})
    assert "see only" not in warned(few)
    rare = plan_of(
        write(tmp_path / "u.jsonl", english(200)), train={"max_steps": 40, "batch_size": 1}
    )
    assert "40 steps see only 24% of the training examples" in warned(rare)


@pytest.mark.parametrize("kind", ["squad", "tagging", "choice"])
def test_three_steps_on_records(tmp_path: Path, kind: str) -> None:
    """google-research/albert#25 again: the plan of questions, tags and choices says it as well."""
    path = tmp_path / "r.json"
    story = "Mira keeps lamp {n} in the hall."
    if kind == "squad":
        qas = [[{"id": str(n), "question": "Who keeps it?",
                 "answers": [{"text": "Mira", "answer_start": 0}]}] for n in range(60)]  # fmt: skip
        data = [{"title": str(n), "paragraphs": [{"context": story.format(n=n), "qas": q}]}
                for n, q in enumerate(qas)]  # fmt: skip
        path.write_text(json.dumps({"data": data}))
    elif kind == "tagging":
        rows = [{"text": story.format(n=n), "spans": [[0, 4, "PER"]]} for n in range(60)]
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        rows = [
            {"question": story.format(n=n), "choices": ["yes", "no"], "answer": n % 2}
            for n in range(60)
        ]
        path.write_text(json.dumps(rows))
    assert "3 optimizer steps in all are too few" in warned(
        plan_of(path, data={"task": kind}, train={"max_steps": 3})
    )


def test_a_vocabulary_of_another_script(tmp_path: Path, model_dir: Path) -> None:
    """google-research/albert#230: a vocabulary that does not belong to the texts."""
    path = write(tmp_path / "t.jsonl", [f"{CYRILLIC[i % 4]} {i}" for i in range(80)])
    plan = plan_of(path, model={"source": str(model_dir)})
    assert "unknown to the vocabulary: it is of another language or script" in warned(plan)
    own = plan_of(path, model={"source": "tiny", "vocab_size": 64})
    assert "unknown" not in warned(own)


def test_a_vocabulary_that_knows_letters_and_no_words(tmp_path: Path, model_dir: Path) -> None:
    words = ("bohkegraut", "thinkelrad", "dobertlif", "keltinhorb")
    path = write(
        tmp_path / "t.jsonl", [f"{words[i % 4]} {words[i % 3]} {words[i % 2]}" for i in range(80)]
    )
    plan = plan_of(path, model={"source": str(model_dir)})
    assert "almost letter by letter" in warned(plan) or "unknown to the vocabulary" in warned(plan)


def test_a_vocabulary_file_of_another_model(
    tmp_path: Path, make_model: Callable[..., Path]
) -> None:
    """google-research/albert#230: base weights with the vocabulary of xlarge."""
    model = make_model(folder=tmp_path / "model")
    path = write(tmp_path / "t.jsonl", english())
    own = plan_of(path).model.tokenizer  # another vocabulary, of the same kind
    for name, content in own.files().items():
        (model / name).write_bytes(content)
    with pytest.raises(
        CheckpointError, match="not the vocabulary that these weights were saved with"
    ):
        plan_of(path, model={"source": str(model)})


def test_a_learning_rate_that_only_small_models_bear(tmp_path: Path, model_dir: Path) -> None:
    """google-research/google-research#151: xlarge learns at 5e-6 and not at the usual rates."""
    path = write(tmp_path / "t.jsonl", english())
    high = plan_of(path, model={"source": str(model_dir)}, train={"learning_rate": 0.05})
    assert "a learning rate of 0.05 is above what pretrained weights of width 32" in warned(high)
    assert "lower --lr" in advice(high.warnings)
    scratch = plan_of(path, train={"learning_rate": 0.1})
    assert "new weights of width 128 usually bear" in warned(scratch)
    other = plan_of(path, train={"learning_rate": 0.1, "optimizer": "lamb"})
    assert "usually bear" not in warned(other)  # rates of LAMB are of another scale


def test_a_wrong_text_column(tmp_path: Path) -> None:
    rows = "\n".join(f"shop {i % 3},the lamp {i},{('good', 'bad')[i % 2]}" for i in range(80))
    (tmp_path / "t.csv").write_text("source,text,label\n" + rows + "\n")
    plan = plan_of(tmp_path / "t.csv", data={"text_columns": ["source"], "label_column": "label"},
                   model={"source": "tiny", "vocab_size": 64})  # fmt: skip
    assert "different ones after encoding" in warned(plan)
    assert "--text-column" in warned(plan)


def test_text_and_label_columns_swapped(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", english())
    with pytest.raises((DataError, SettingsError), match="label"):
        plan = plan_of(path, data={"text_columns": ["label"], "label_column": "text"})
        raise DataError("label: " + warned(plan))


def test_weights_that_are_not_there(tmp_path: Path, make_model: Callable[..., Path]) -> None:
    """google-research/albert#132: an empty init_checkpoint was passed over, F1 16 for 90."""
    model = make_model(folder=tmp_path / "model")
    path = write(tmp_path / "t.jsonl", english())
    (model / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors|weights"):
        plan_of(path, model={"source": str(model)})


def test_weights_of_which_a_part_is_missing(
    tmp_path: Path, make_model: Callable[..., Path]
) -> None:
    from safetensors.torch import load_file, save_file

    model = make_model(folder=tmp_path / "model")
    tensors = load_file(model / "model.safetensors")
    name = next(key for key in tensors if "ffn_output.weight" in key)
    del tensors[name]
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    path = write(tmp_path / "t.jsonl", english())
    with pytest.raises(CheckpointError, match=r"1 weights are missing: .*ffns\.0\.down"):
        plan_of(path, model={"source": str(model)})


def test_weights_that_are_no_longer_numbers(
    tmp_path: Path, make_model: Callable[..., Path]
) -> None:
    """graykode/ALBERT-Pytorch#5: NaN, saved and trained on."""
    from safetensors.torch import load_file, save_file

    model = make_model(folder=tmp_path / "model")
    tensors = load_file(model / "model.safetensors")
    name = next(iter(tensors))
    tensors[name].view(-1)[0] = float("nan")
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    plan = plan_of(write(tmp_path / "t.jsonl", english()), model={"source": str(model)})
    with pytest.raises(CheckpointError, match="not finite; the training diverged or the file is"):
        new_model(plan, None)


def test_a_head_that_is_new_is_named(tmp_path: Path, model_dir: Path) -> None:
    """huggingface/transformers#1979: a checkpoint without a trained head answers at random."""
    path = write(tmp_path / "t.jsonl", english())
    two = plan_of(path, model={"source": str(model_dir)})  # it has a head of three labels
    assert any("new, untrained weights for: sequence" in line for line in two.describe())
    labels = [("bad", "good", "so-so")[i % 3] for i in range(80)]
    three = plan_of(
        write(tmp_path / "u.jsonl", english(), labels), model={"source": str(model_dir)}
    )
    assert not any("untrained" in line for line in three.describe())


def test_a_folder_without_a_task_does_not_answer(tmp_path: Path, model_dir: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(model_dir, bare)
    (bare / "task.json").unlink()
    with pytest.raises(CheckpointError, match="can embed but not predict; train it for a task"):
        load(bare).predict("the lamp")


def test_one_label_alone_is_nothing_to_learn(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", english(), ["good"] * 80)
    with pytest.raises(DataError, match="label"):
        plan_of(path)


def test_advice_names_what_was_warned_of_or_the_usual_causes() -> None:
    assert advice(["the rate is high"]) == "likely because: the rate is high"
    assert "learning rate that is too high" in advice(())
