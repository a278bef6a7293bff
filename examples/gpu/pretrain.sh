#!/usr/bin/env bash
# One prepared visit to a machine with an accelerator: set up, pretrain for a given time, pack up.
#
#   bash examples/gpu/pretrain.sh SHARDS EVAL_SHARDS OUT BUDGET [more options of litebert pretrain]
#
# SHARDS and EVAL_SHARDS are folders of `litebert prepare`; OUT receives the run folder without its
# training states. BUDGET is the time of training alone, such as 10m; it ends with a finished decay.
# The machine needs Python >= 3.11; torch and the other packages are used where they are there.
set -euo pipefail

if [ "$#" -lt 4 ]; then
  sed -n '2,9p' "$0" >&2
  exit 2
fi
shards=$1 eval_shards=$2 out=$3 budget=$4
shift 4
here=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! "$python" -c 'import litebert, torch' 2>/dev/null; then
  export PYTHONPATH="$here/src${PYTHONPATH:+:$PYTHONPATH}"
  "$python" -c 'import litebert, torch' || "$python" -m pip install --quiet "$here[train]"
fi
run() { "$python" -c 'from litebert.cli import main; main()' "$@"; }

mkdir -p "$out"
run doctor > "$out/doctor.txt" || true
run pretrain "$here/configs/pretrain/gpu-small-en.toml" \
  --set "data.shards=\"$shards\"" --set "data.eval_shards=\"$eval_shards\"" \
  --out "$work/run" --time-budget "$budget" "$@" 2>&1 | tee "$out/log.txt"
tar --exclude checkpoints -C "$work" -cf - run | tar -C "$out" -xf -
du -sh "$out" >&2
