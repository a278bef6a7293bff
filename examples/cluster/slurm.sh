#!/bin/bash
# Pretraining on Slurm, resumed until it is finished:  sbatch slurm.sh CONFIG.toml OUT_FOLDER
#SBATCH --job-name=litebert
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# To this script, five minutes before the time limit (or at preemption: see README.md).
#SBATCH --signal=B:TERM@300
set -euo pipefail

config=${1:?usage: sbatch slurm.sh CONFIG.toml OUT_FOLDER}
out=${2:?usage: sbatch slurm.sh CONFIG.toml OUT_FOLDER}
first_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)  # sed reads to the end: no broken pipe
stopping=no

srun --kill-on-bad-exit=1 torchrun \
  --nnodes "$SLURM_NNODES" --nproc-per-node gpu \
  --rdzv-backend c10d --rdzv-id "$SLURM_JOB_ID" --rdzv-endpoint "$first_node:29500" \
  --shutdown-timeout 240 \
  --no-python litebert pretrain "$config" --out "$out" --resume &
training=$!
trap 'stopping=yes; kill -TERM "$training"' TERM

code=0
wait "$training" || code=$?
if [ "$stopping" = yes ]; then
  wait "$training" || true  # the first wait ended with the signal, the training saves until now
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
fi
exit "$code"
