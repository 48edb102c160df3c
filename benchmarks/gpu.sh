#!/bin/sh
# gpu.sh [OPTION...]: everything about a GPU in one run of ten minutes at most, without a network (benchmarks/gpu.py).
#
# It needs a Python with a torch that has CUDA (PYTHON, python3 unless given), mirada's own packages, and nothing
# installed of mirada itself. Packages that are missing there can be brought along in a folder (PACKAGES), made where
# there is a network, for that Python's version, without torch:
#     pip install --no-deps --target gpu-packages pydantic pydantic-core annotated-types typing-extensions \
#         typing-inspection PyYAML rich tokenizers safetensors sacrebleu portalocker filelock …
#     PACKAGES=gpu-packages OUT=results benchmarks/gpu.sh
# Rows (JSON lines) and report.md go to OUT. `benchmarks/gpu.sh --device cpu --quick` shows on any machine that it runs.
set -eu
cd "$(dirname "$0")/.."
export PYTHONPATH="src:.:${PACKAGES:-}${PYTHONPATH:+:$PYTHONPATH}" KINETO_LOG_LEVEL=99 PYTHONUNBUFFERED=1
exec "${PYTHON:-python3}" -m benchmarks.gpu "$@"
