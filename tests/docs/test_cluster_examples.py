"""The example files for clusters parse, name only options that exist, and requeue when they should."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cluster"
SLURM = FOLDER / "slurm.sh"
BASH = shutil.which("bash")
FILES = ["slurm.sh", "kubernetes.yaml", "skypilot.yaml", "README.md"]
STARTED_SECONDS = 20.0

needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed")


def documents(name: str) -> list[Any]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((FOLDER / name).read_text("utf-8")))


def training_command(name: str) -> list[str]:
    """Return the words of the torchrun command in a file."""
    text = (FOLDER / name).read_text("utf-8")
    if name == "kubernetes.yaml":
        job = documents(name)[1]
        text = job["spec"]["template"]["spec"]["containers"][0]["args"][0]
    elif name == "skypilot.yaml":
        text = documents(name)[0]["run"]
    start = text.index("torchrun --nproc") if name == "README.md" else text.index("torchrun ")
    words = shlex.split(text[start:].replace("\\\n", " ").partition("\n")[0])
    return words[: words.index("&")] if "&" in words else words


@pytest.mark.parametrize("name", FILES)
def test_torchrun_knows_every_option(name: str) -> None:
    run = pytest.importorskip("torch.distributed.run")
    words = training_command(name)[1:]
    assert words.count("--no-python") == 1
    parsed, rest = run.get_args_parser().parse_known_args(
        [re.sub(r"\$\{?[A-Z_]+\}?|^N$", "2", word) for word in words]
    )
    assert not rest
    assert [parsed.training_script, parsed.training_script_args[0]] == ["litebert", "pretrain"]


@pytest.mark.parametrize("name", FILES)
def test_litebert_knows_every_option(name: str) -> None:
    import typer

    from litebert.cli import app

    words = training_command(name)
    options = [word for word in words[words.index("pretrain") :] if word.startswith("-")]
    assert options == ["--out", "--resume"]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    if "pretrain" not in commands:
        pytest.skip("this version has no command `litebert pretrain`")
    known = {text for parameter in commands["pretrain"].params for text in parameter.opts}
    assert known.issuperset(options)


def test_the_pods_find_each_other() -> None:
    service, job = documents("kubernetes.yaml")
    pod = job["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["clusterIP"] == "None"
    command = training_command("kubernetes.yaml")
    first = f"{job['metadata']['name']}-0.{pod['spec']['subdomain']}"
    assert command[command.index("--master-addr") + 1] == first
    assert pod["spec"]["subdomain"] == service["metadata"]["name"]
    assert int(command[command.index("--nnodes") + 1]) == job["spec"]["completions"]
    port = int(command[command.index("--master-port") + 1])
    assert port == service["spec"]["ports"][0]["port"]
    (container,) = pod["spec"]["containers"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_processes_get_less_time_than_the_job() -> None:
    def patience(name: str) -> int:
        words = training_command(name)
        return int(words[words.index("--shutdown-timeout") + 1])

    (warning,) = re.findall(r"--signal=B:TERM@(\d+)", SLURM.read_text("utf-8"))
    assert patience("slurm.sh") < int(warning)
    pod = documents("kubernetes.yaml")[1]["spec"]["template"]["spec"]
    assert patience("kubernetes.yaml") < pod["terminationGracePeriodSeconds"]


def test_skypilot_has_what_it_needs() -> None:
    (task,) = documents("skypilot.yaml")
    assert set(task) == {"name", "num_nodes", "resources", "file_mounts", "setup", "run"}
    assert task["resources"]["use_spot"] is True
    words = training_command("skypilot.yaml")
    for path in (words[words.index("pretrain") + 1], words[words.index("--out") + 1]):
        assert any(path.startswith(mount) for mount in task["file_mounts"])


@needs_bash
@pytest.mark.parametrize("text", [SLURM.name, "skypilot.run", "skypilot.setup", "kubernetes"])
def test_bash_can_read_it(text: str) -> None:
    if text == SLURM.name:
        script = SLURM.read_text("utf-8")
    elif text == "kubernetes":
        container = documents("kubernetes.yaml")[1]["spec"]["template"]["spec"]["containers"][0]
        assert container["command"] == ["bash", "-c"]
        script = container["args"][0]
    else:
        script = documents("skypilot.yaml")[0][text.partition(".")[2]]
    found = subprocess.run(
        [str(BASH), "-n"], input=script, text=True, capture_output=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")


STAND_INS = {
    "srun": 'shift; exec "$@"',
    "scontrol": '[ "$1" = show ] && printf "n1\\nn2\\n" || echo "$*" >> calls',
    "torchrun": """
echo "$*" > command
if [ -e finish ]; then exit "$(cat finish)"; fi
trap 'sleep 0.3; echo saved >> calls; exit 1' TERM
touch started
while true; do sleep 0.1; done
""",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A folder with stand-ins for the programs that `slurm.sh` calls."""
    for name, body in STAND_INS.items():
        path = tmp_path / name
        path.write_text(f"#!{BASH}\n{body}\n")
        path.chmod(0o755)
    return tmp_path


def submit(folder: Path) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_NNODES": "2",
        "SLURM_JOB_ID": "77",
    }
    return subprocess.Popen(
        [str(BASH), str(SLURM), "a b.toml", "runs/c"], cwd=folder, env=environment
    )


@needs_bash
def test_slurm_requeues_after_a_signal_when_the_state_is_saved(cluster: Path) -> None:
    with submit(cluster) as job:
        deadline = time.monotonic() + STARTED_SECONDS
        while not (cluster / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        assert job.wait(STARTED_SECONDS) == 0
    assert (cluster / "calls").read_text().splitlines() == ["saved", "requeue 77"]
    command = (cluster / "command").read_text()
    assert "--rdzv-endpoint n1:29500" in command
    assert command.endswith("litebert pretrain a b.toml --out runs/c --resume\n")


@needs_bash
@pytest.mark.parametrize("code", [0, 1])
def test_slurm_does_not_requeue_what_ended_by_itself(cluster: Path, code: int) -> None:
    (cluster / "finish").write_text(str(code))
    with submit(cluster) as job:
        assert job.wait(STARTED_SECONDS) == code
    assert not (cluster / "calls").exists()
