#!/usr/bin/env bash
# Writes docs/results/ from a result store: tables, statistics and figures of the studies.
#
#   bash benchmarks/results.sh STORE            # what the store holds, as text and images
#   bash benchmarks/results.sh STORE run FOLDER # first does what is missing, with the data in FOLDER (some hours)
#
# mgc and labelme have ten seeds, the larger sets three.
set -euo pipefail
cd "$(dirname "$0")/.."
store=$1
bench() { .venv/bin/annotmix bench "$@" --store "$store"; }
if [ "${2:-}" = run ]; then
    for study in benchmark ablation plus curves; do
        bench run "$study" --datasets mgc,labelme --data "$3"
        large=letter,trec6
        [ "$study" = plus ] && large=letter
        bench run "$study" --datasets "$large" --seeds 3 --data "$3"
    done
fi
out=docs/results
mkdir -p "$out"
sets=mgc,labelme,letter,trec6
table() { bench tables "$1" --datasets "$2" --score "$3" --format markdown --out "$out/$1-$3.md" "${@:4}"; }
table benchmark "$sets" clf-acc --paper
table benchmark "$sets" perf-auroc --paper
table benchmark "$sets" annot-acc
table benchmark "$sets" consensus-acc
table ablation "$sets" clf-acc --paper
table ablation "$sets" annot-acc
for score in clf-acc consensus-acc perf-auroc; do table plus mgc,labelme,letter "$score"; done
bench figures ablation --datasets "$sets" --out "$out"
bench figures curves --datasets "$sets" --out "$out"
