#!/usr/bin/env bash
# What a machine with a GPU does: ceilings, readiness, ResNet-34 and ResNet-101 with stage times, feed and verdict.
#
#   benchmarks/gpu_check.sh FOLDER
#
# Writes into FOLDER: machine.txt, check.json, ceilings.json, and of each training a record (NAME.run.json, what
# `rank --measured` reads) and all facts (NAME.json); run-1.txt and run-2.txt are their pages. No network. Ends within six
# minutes: every part has a time limit, and one that fails does not stop the next; the exit code counts the failures. A
# part over its limit is asked to end and has 75 s for that: a training may take a minute for its checkpoint.
# Batch 64 is that of the catalogue's workloads, which the records are set beside.
# PYTHON: the interpreter that has gpuwise[measure]. MINUTES: of each training (default 1).
set -u
folder=${1:?usage: gpu_check.sh FOLDER}
python=${PYTHON:-python3}
minutes=${MINUTES:-1}
mkdir -p "$folder" || exit 1
folder=$(cd "$folder" && pwd)
export GPUWISE_STORE="$folder/runs.sqlite3"
GPUWISE_CACHE=$(mktemp -d) || exit 1
export GPUWISE_CACHE
trap 'rm -rf "$GPUWISE_CACHE"' EXIT
failed=0

# part NAME SECONDS ARGUMENTS…: one command of gpuwise, its answer as JSON in NAME.json, its messages in NAME.log
part() {
  local name=$1 limit=$2
  shift 2
  SECONDS=0
  if timeout --kill-after=75 "$limit" "$python" -m gpuwise "$@" --json >"$folder/$name.json" 2>"$folder/$name.log"; then
    echo "$name: ${SECONDS} s"
  else
    echo "$name: failed with $? after ${SECONDS} s, see $name.log" >&2
    failed=$((failed + 1))
  fi
}

{
  uname -srm
  "$python" --version
  "$python" -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda)'
  lscpu 2>/dev/null | grep -E '^(Model name|CPU\(s\)|Thread|Socket)'
  free -g 2>/dev/null | sed -n 2p
  df -h /dev/shm "$folder" 2>/dev/null
  nvidia-smi --query-gpu=index,name,driver_version,memory.total,power.limit,clocks.max.sm --format=csv 2>&1
  nvidia-smi topo -m 2>/dev/null
} >"$folder/machine.txt" 2>&1

part check 60 check --data "$folder"
part ceilings 65 ceilings --data "$folder" --within 58s
part painter-light 110 measure painter-light --batch 64 --minutes "$minutes" --out "$folder/painter-light.run.json"
part painter-heavy 110 measure painter-heavy --batch 64 --minutes "$minutes" --out "$folder/painter-heavy.run.json"

for number in 1 2; do
  timeout 10 "$python" -m gpuwise runs show "$number" >"$folder/run-$number.txt" 2>/dev/null
done
exit "$failed"
