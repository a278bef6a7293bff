"""`litebert predict` and the reading commands as processes, between pipes and in bad places."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Litebert, Run, environment

pytestmark = pytest.mark.slow

IMPORT_BAN = ("torch", "numpy", "pyarrow", "sklearn", "matplotlib", "transformers")
HEAD_START = """
import sys
from litebert.cli import main
try:
    main()
except SystemExit as ended:
    code = ended.code
names = [name for name in {ban!r} if name in sys.modules]
print("MODULES", names, file=sys.stderr)
sys.exit(code)
"""


def popen(*arguments: object, cwd: Path, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, "-m", "litebert", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        **options,
    )


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("train", "--help")])
def test_help_imports_nothing_heavy(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code = HEAD_START.format(ban=IMPORT_BAN)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "MODULES []\n"
    assert done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_reader_that_goes_away(finished: Run, tmp_path: Path) -> None:
    """As with `| head -1`: the process ends soon, without a traceback."""
    process = popen(
        "predict", finished.path, "-",
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"the lamp\n" * 3000)
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["review"] == "the lamp"
    process.stdout.close()
    try:
        process.stdin.write(b"the lamp\n" * 3000)
        process.stdin.close()
    except BrokenPipeError:
        pass
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert stderr == b""


def test_each_line_is_answered_when_it_comes(finished: Run, tmp_path: Path) -> None:
    process = popen(
        "predict", finished.path,
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    for text in ("works well", "", "came broken"):
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], 120)
        assert ready, "no answer before the end of the input"
        assert json.loads(process.stdout.readline())["review"] == text
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
def test_a_long_stream_takes_no_memory(finished: Run, tmp_path: Path) -> None:
    """48 MB of lines that are cut to a few tokens each: resident memory stays where it was."""
    process = popen(
        "predict", finished.path, "--format", "plain",
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    line = b"lamp " * 60_000 + b"\n"
    peaks: list[int] = []
    for _ in range(160):
        process.stdin.write(line)
        process.stdin.flush()
        process.stdout.readline()
        status = Path(f"/proc/{process.pid}/status").read_text()
        peaks.append(int(status.split("VmRSS:")[1].split()[0]))
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()
    process.stderr.close()
    assert max(peaks) < peaks[8] + 24_000, "grew by more than 24 MB"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file descriptors")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(finished: Run, tmp_path: Path, closed: str) -> None:
    out = tmp_path / "answer.csv"
    command = f'"$0" -m litebert predict "$1" "the lamp" --out answer.csv {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(finished.path)],
        cwd=tmp_path,
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert out.read_text().splitlines()[0] == "text,prediction,score,scores"
    shown = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m litebert info tiny {closed}', sys.executable],
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert (shown.stdout == b"") == (">&-" in closed.replace("2>&-", ""))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_at_the_end_of_a_pipe(finished: Run, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "litebert", "predict", str(finished.path), "the lamp"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert done.returncode == 74
    assert b"Traceback" not in done.stderr
    assert b"No space left" in done.stderr


def test_surrogates_and_control_characters_leave_as_utf_8(
    finished: Run, litebert: Litebert, tmp_path: Path
) -> None:
    lines = [{"review": "a\ud800b", "x\udfff": 1}, {"review": "\x00\x1b[31m\x7f\u2028\r"}]
    stdin = "".join(json.dumps(line) + "\n" for line in lines).encode("ascii")
    done = litebert("predict", finished.path, cwd=tmp_path, stdin=stdin)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.decode("utf-8").split("\n") if line]
    assert [row["review"] for row in rows] == [line["review"] for line in lines]
    assert rows[0]["x\udfff"] == 1
    done = litebert(
        "predict", finished.path, "--format", "csv", cwd=tmp_path, stdin=stdin.split(b"\n")[0]
    )
    assert "a\\ud800b" in done.stdout.decode("utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX folders")
def test_a_working_folder_that_is_gone(finished: Run, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    script = f"""
import os, sys
os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})
from litebert.cli import main
main()
"""
    for arguments, codes in [
        (("info", "tiny"), {0}),
        (("compare", "tiny", str(finished.path)), {0}),
        (("doctor", "--quick"), {1}),
    ]:
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
        assert done.returncode in codes, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/proc/sys").exists(), reason="needs a folder nobody can write to")
def test_a_working_folder_that_cannot_be_written(finished: Run, table: Path) -> None:
    where = Path("/proc/sys")
    done = popen(
        "train", table, "--yes", "--no-baselines", cwd=where,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, stderr = done.communicate(timeout=240)
    assert done.returncode == 73, stderr
    assert b"choose another folder" in stderr or b"cannot write here" in stderr
    done = popen("predict", finished.path, "the lamp", cwd=where, stdout=subprocess.PIPE)
    assert done.communicate(timeout=240)[0].count(b"\t") == 1
    assert done.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_while_it_waits_for_lines(finished: Run, tmp_path: Path) -> None:
    process = popen(
        "predict", finished.path,
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"the lamp\n")
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(2)
    assert process.wait(timeout=60) == 130
    assert process.stderr.read() == b"error: interrupted\n"
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_names_of_the_file_system(finished: Run, litebert: Litebert, tmp_path: Path) -> None:
    """A file whose name is not UTF-8 is read all the same."""
    if sys.platform in ("win32", "darwin"):
        pytest.skip("file names are Unicode here")
    path = os.fsencode(tmp_path) + b"/name\xe9.csv"
    with open(path, "wb") as file:  # noqa: PTH123 - a name in bytes
        file.write(b"review\nthe lamp\n")
    done = litebert("predict", finished.path, os.fsdecode(path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == b"review,prediction,score,scores"
