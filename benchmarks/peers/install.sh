#!/bin/sh
# install.sh FOLDER PEER...: each toolkit (onmt joey yoyo hf eole) in a virtual environment of its own, FOLDER/venvs/PEER,
# all with the torch of constraints.txt. CTranslate2 comes with onmt. pip takes a CUDA build of torch where an index offers
# one first: set PIP_INDEX_URL or PIP_EXTRA_INDEX_URL to one with CPU builds if the machine has no GPU.
set -eu
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/venvs" && folder=$(cd "$1" && pwd) && shift
export PIP_CONSTRAINT="$folder/venvs/torch.txt" PIP_DISABLE_PIP_VERSION_CHECK=1
grep '^torch==' "$here/../../constraints.txt" > "$PIP_CONSTRAINT"

install() { # ENVIRONMENT PACKAGE...
	[ -d "$folder/venvs/$1" ] || ${PYTHON:-python3} -m venv "$folder/venvs/$1"
	pip="$folder/venvs/$1/bin/pip" && shift
	"$pip" install --quiet "$@"
}

install prepare sentencepiece
for peer in "$@"; do
	case $peer in
	onmt) # its own requirements ask for torch below 2.3; all transforms are imported at the start, so all must be there
		install onmt torch configargparse ctranslate2==4.8.5 fasttext-wheel flask pyahocorasick pyonmttok pyyaml rapidfuzz \
			sacrebleu sentencepiece six spacy tensorboard waitress
		"$pip" install --quiet --no-deps OpenNMT-py==3.5.1 ;;
	joey) # importlib_metadata is imported but not required
		install joey torch importlib_metadata joeynmt==2.3.0 ;;
	yoyo) # without torchvision and torchaudio, which it requires, never imports, and cannot load beside a CPU build of torch
		install yoyo torch 'jsonargparse[signatures]<5' 'lightning<3' maxwell omegaconf pyyaml rich torchmetrics wandb
		"$pip" install --quiet --no-deps yoyodyne==0.5.27 ;;
	hf) install hf torch sacrebleu transformers==5.24.0 ;;
	eole) # aiohttp is imported but not required
		install eole torch aiohttp eole==0.6.4 ;;
	*) echo "unknown toolkit $peer: expected onmt, joey, yoyo, hf or eole" >&2; exit 2 ;;
	esac
done
