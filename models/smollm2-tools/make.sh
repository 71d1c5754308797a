#!/bin/sh
# Makes the adapter again:    models/smollm2-tools/make.sh FOLDER
# From the root of the source tree, with rightcall[cli,local,train] installed. A GPU makes it minutes instead of hours.
set -eu
here=$(pwd) out=$1
export PYTHONPATH="$here/evals:$here/examples/train"
mkdir -p "$out" && cd "$out"
python "$here/evals/training_rows.py" logs.jsonl
rightcall dataset import logs.jsonl --from chat --model bfcl -o rows.jsonl
rightcall dataset label rows.jsonl -o labelled.jsonl
rightcall dataset split labelled.jsonl --by tool --validation-ratio 0.15 --seed test -o test
rightcall dataset split test/train.jsonl --by tool --validation-ratio 0.08 --seed choose -o choose
for contract in auto required; do
    rightcall dataset export choose/train.jsonl --to text --format hermes --contract $contract -o $contract.jsonl
done
python "$here/evals/training_rows.py" train.jsonl --mix auto.jsonl required.jsonl
rightcall model pull smollm2
model=$(rightcall model list --json | python -c 'import json, sys; print(json.load(sys.stdin)[0]["path"])')
python "$here/examples/train/train.py" --model "$model" --rows train.jsonl --out run --rank 8 --epochs 3
python "$here/examples/train/to_gguf.py" run/adapter.safetensors smollm2-tools.gguf
