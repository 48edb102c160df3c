#!/bin/sh
# run.sh FOLDER PEER...: measure what install.sh and prepare.py have put into FOLDER. Every run adds a row to
# FOLDER/results/*.jsonl. OPTIONS is given to every training, e.g. OPTIONS="--updates 60 --threads 4".
set -eu
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
folder=$(cd "$1" && pwd) && shift
cd "$(dirname "$0")/../.."

has() { [ -f "$folder/data/$1.train.source" ]; }
measure() { # ENVIRONMENT DRIVER VERB WORK [OPTION...]
	environment=$1 driver=$2 verb=$3 work=$4 && shift 4
	echo "$driver $verb $work $*"
	"$folder/venvs/$environment/bin/python" -m "benchmarks.peers.$driver" "$verb" "$work" "$folder" "$@" \
		> "$folder/results/last.log" 2>&1 || { tail -n 5 "$folder/results/last.log" >&2; exit 1; }
}
train() { peer=$1 && shift; for work in "$@"; do measure "$peer" "$peer" train "$work" ${OPTIONS:-}; done; }
decode() { # DRIVER WORK [OPTION...]: all sentences at two beams, some one by one, and a start
	driver=$1 work=$2 && shift 2
	for beam in 5 1; do measure "$peer" "$driver" decode "$work" --beam $beam "$@"; done
	measure "$peer" "$driver" decode "$work" --batch 1 --sentences 200 "$@"
	measure "$peer" "$driver" start "$work" "$@"
}

mkdir -p "$folder/results"
for peer in "$@"; do
	case $peer in
	onmt) if has text; then
			train onmt T1 T2-nofeed
			for work in T2 T3; do measure onmt onmt train $work --keep 680 ${OPTIONS:-}; decode onmt $work; done
			measure onmt ct2 convert T3
			for precision in float32 int8_float32; do
				decode ct2 T3 --precision $precision --workers 2 --intra 1
				decode ct2 T3 --precision $precision --workers 1 --intra 2
			done
		fi ;;
	joey) if has text; then train joey T1 T2 T3; fi ;; # it decodes too, but without a cache: allow for minutes a pass
	yoyo) if has text; then train yoyo T1 T3; fi ;;
	hf) if has text; then measure hf hf train T3 --keep 680 ${OPTIONS:-}; decode hf T3; fi ;;
	eole) if has text; then train eole T3; fi ;;
	*) echo "unknown toolkit $peer: expected onmt, joey, yoyo, hf or eole" >&2; exit 2 ;;
	esac
	case $peer in onmt | joey | yoyo) if has g2p; then train "$peer" T4; fi ;; esac
done
