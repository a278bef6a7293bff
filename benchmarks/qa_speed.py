"""Question answering beside transformers: from texts to answers, same weights, taking turns.

    python -m benchmarks.qa_speed            # under 3 minutes
    python -m benchmarks.qa_speed --quick    # smoke test

Both sides get the same real passages with several questions each, windows of 384 tokens, stride 128,
the same token ids, and give the best answer of at most 30 tokens. transformers 5 has no question
answering pipeline any more; its side is what its documentation shows: the fast tokenizer with
overflowing windows in batches of 8, `AlbertForQuestionAnswering`, the 20 best starts and ends. It is
measured twice: windows padded to 384 as documented, and only to the longest of their batch. Ours is
measured in torch and as exported, in fp32 and int8, which is what `litebert predict` uses for an export.
Needs the data and the vocabulary beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import machine, seconds
from litebert.checkpoint.folder import save_model
from litebert.checkpoint.keys import to_published
from litebert.data.readers import ReadOptions
from litebert.data.squad import Question, read_squad
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.presets import preset
from litebert.recipes.export import export_model
from litebert.runtime.session import Session
from litebert.tasks.span import SquadTask
from litebert.text.tokenizer import Tokenizer
from litebert.train.evaluate import predict_outputs

RESULTS = Path(__file__).parent / "results" / "tasks-qa-speed.json"
SHARED = Path(os.environ.get("LITEBERT_SHARED", Path(__file__).resolve().parents[2] / "shared"))
VOCABULARY = SHARED / "models" / "albert-english-vocab"
SHAPES: dict[str, dict[str, int]] = {
    "256x4": {
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
    },
}
TARGET = 2.0
BATCH = 8
MAX_LENGTH, QUERY, STRIDE, LONGEST, N_BEST = 384, 64, 128, 30, 20


def read_questions(count: int) -> list[Question]:
    """Up to three questions of every 40th passage, until there are enough."""
    source = read_squad(SHARED / "data" / "squad" / "dev-v1.1.json.zip", ReadOptions(), True)
    passages: dict[str, list[Question]] = {}
    for question in source.train.records:
        passages.setdefault(question.context, []).append(question)
    found: list[Question] = []
    for questions in list(passages.values())[::40]:
        found += questions[:3]
        if len(found) >= count:
            break
    return found


class Ours:
    """Windows that share their passages, packed batches, vectorised decoding."""

    def __init__(self, config: AlbertConfig) -> None:
        torch.manual_seed(0)
        self.model = AlbertWithHead(config, "span").eval()
        with torch.no_grad():  # spread, so that answers do not hang on the last digit
            self.model.heads["span"].classifier.weight.mul_(20)
        self.tokenizer = Tokenizer.from_pretrained(VOCABULARY / "tokenizer.json")
        self.task = SquadTask()

    def __call__(self, questions: list[Question]) -> list[str]:
        """Return the best answers."""
        features = self.task.features(questions, self.tokenizer, labelled=False)
        outputs = predict_outputs(
            self.model, [f.encoded for f in features], batch_tokens=BATCH * MAX_LENGTH
        )
        assert outputs is not None
        return [str(answer.value) for answer in self.task.answers(questions, features, outputs)]


class Exported:
    """The same model as an exported folder, through the runtime without torch."""

    def __init__(self, ours: Ours, precision: str, folder: Path) -> None:
        model, out = folder / "model", folder / f"export-{precision}"
        if not model.exists():
            save_model(ours.model, model, ours.tokenizer, ours.task.to_json())
        export_model("onnx", model, out, precisions=(precision,), plain=False, least_agreement=0.0)
        self.session = Session(out, threads=torch.get_num_threads())

    def __call__(self, questions: list[Question]) -> list[str]:
        """Return the best answers."""
        return [str(answer.value) for answer in self.session.answers(questions)]


class Theirs:
    """What the documentation of transformers shows for question answering."""

    def __init__(self, ours: Ours, padding: str) -> None:
        import transformers

        self.padding = padding
        config = ours.model.config
        values = config.to_dict()
        for key in ("litebert", "model_type", "architectures"):
            values.pop(key, None)
        self.model = transformers.AlbertForQuestionAnswering(
            transformers.AlbertConfig(**values)
        ).eval()
        state = {
            to_published(
                name.removeprefix("model."), inner=config.inner_group_num, head="span"
            ): tensor
            for name, tensor in ours.model.state_dict().items()
        }
        self.model.load_state_dict(state, strict=True)
        self.tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(VOCABULARY / "tokenizer.json"),
            cls_token="[CLS]", sep_token="[SEP]", pad_token="<pad>", unk_token="<unk>",  # noqa: S106
            mask_token="[MASK]",  # noqa: S106
        )  # fmt: skip

    def __call__(self, questions: list[Question]) -> list[str]:
        """Return the best answers."""
        room = MAX_LENGTH - STRIDE
        answers: list[str] = []
        encoded = self.tokenizer(
            [q.question for q in questions], [q.context for q in questions], truncation="only_second",
            max_length=MAX_LENGTH, stride=room - QUERY, return_overflowing_tokens=True,
            return_offsets_mapping=True, return_token_type_ids=True,
        )  # fmt: skip
        starts: list[np.ndarray] = []
        ends: list[np.ndarray] = []
        names = ("input_ids", "attention_mask", "token_type_ids")
        with torch.inference_mode():
            for a in range(0, len(encoded["input_ids"]), BATCH):
                part = {name: encoded[name][a : a + BATCH] for name in names}
                padded = self.tokenizer.pad(
                    part, padding=self.padding, max_length=MAX_LENGTH, return_tensors="pt"
                )
                out = self.model(**padded)
                starts.extend(out.start_logits.numpy())
                ends.extend(out.end_logits.numpy())
        windows: dict[int, list[int]] = {}
        for window, question in enumerate(encoded["overflow_to_sample_mapping"]):
            windows.setdefault(question, []).append(window)
        for number, question in enumerate(questions):
            best, text = -float("inf"), ""
            for window in windows[number]:
                sides = encoded.sequence_ids(window)
                offsets = encoded["offset_mapping"][window]
                start, end = starts[window], ends[window]
                for i in np.argsort(start)[-1 : -N_BEST - 1 : -1].tolist():
                    for j in np.argsort(end)[-1 : -N_BEST - 1 : -1].tolist():
                        if max(i, j) >= len(sides):
                            continue  # on padding
                        if sides[i] != 1 or sides[j] != 1 or j < i or j - i + 1 > LONGEST:
                            continue
                        if start[i] + end[j] > best:
                            best = float(start[i] + end[j])
                            text = question.context[offsets[i][0] : offsets[j][1]]
            answers.append(text.strip())
        return answers


def measure(shape: str, questions: list[Question], rounds: int, folder: Path) -> dict[str, Any]:
    """Measure all sides in turns; speedups are medians of the rounds."""
    ours = Ours(preset("albert-base-v2", **SHAPES[shape], id2label={0: "start", 1: "end"}))
    sides = {
        "torch": ours,
        "fp32": Exported(ours, "fp32", folder),
        "int8": Exported(ours, "int8", folder),
        "documented": Theirs(ours, "max_length"),
        "longest": Theirs(ours, "longest"),
    }
    features = ours.task.features(questions, ours.tokenizer, labelled=False)
    answers = {name: side(questions) for name, side in sides.items()}  # warm-up, thrown away
    rows = [
        {name: seconds(lambda side=side: side(questions)) for name, side in sides.items()}
        for _ in range(rounds)
    ]
    prepare = seconds(lambda: ours.task.features(questions, ours.tokenizer, labelled=False))
    outputs = predict_outputs(ours.model, [f.encoded for f in features])
    assert outputs is not None
    decode = seconds(lambda: ours.task.answers(questions, features, outputs))
    result: dict[str, Any] = {
        "questions": len(questions), "passages": len({q.context for q in questions}),
        "windows": len(features), "real_tokens": sum(len(f.encoded) for f in features), "rounds": rounds,
        "windows_seconds": prepare, "decode_seconds": decode,
        "seconds": {name: statistics.median(row[name] for row in rows) for name in sides},
    }  # fmt: skip
    for name in ("torch", "fp32", "int8"):
        result[name] = {
            f"speedup_{peer}": statistics.median(row[peer] / row[name] for row in rows)
            for peer in ("documented", "longest")
        } | {
            "same_answers": sum(
                x == y for x, y in zip(answers[name], answers["longest"], strict=True)
            )
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test, nothing is written")
    parser.add_argument("--threads", type=int, default=1)
    told = parser.parse_args()
    torch.set_num_threads(told.threads)
    plan = {"256x4": (6, 1)} if told.quick else {"256x4": (36, 5)}
    results: dict[str, Any] = {"machine": machine(), "target_speedup": TARGET}
    for shape, (count, rounds) in plan.items():
        with tempfile.TemporaryDirectory() as place:
            results[shape] = measure(shape, read_questions(count), rounds, Path(place))
        print(shape, json.dumps(results[shape], indent=1))
    results["load_after"] = os.getloadavg()[0]
    if not told.quick:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
