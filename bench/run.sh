#!/usr/bin/env bash
# Runs the benchmarks in interleaved passes and prints benchstat's summary and the
# ratios between contestants. One pass runs everything once, so that whatever else
# the machine does hits all contestants alike.
#
#   PASSES=6 BENCHTIME=100ms PATTERN=. bench/run.sh
#
# About 4 minutes with the defaults. Only numbers of the same run compare. PROXIES=1 puts
# goodput serve beside other proxies as well: 20 minutes more, in which nothing else should
# run, with programs of Debian that it says it installs. See cmd/proxies. `make benchmarks`
# has both, and every other comparison, in one run.
set -euo pipefail
cd "$(dirname "$0")"
export GOWORK=off

passes=${PASSES:-6} time=${BENCHTIME:-100ms} pattern=${PATTERN:-.}
out=../bin && mkdir -p "$out"
bin=$(cd "$out" && pwd)
log=$bin/bench.txt && : >"$log"

go test -c -o "$bin/bench.test" .
go build -o "$bin/ratios" ./cmd/ratios
(cd ../tools && go build -o "$bin/benchstat" golang.org/x/perf/cmd/benchstat)

for pass in $(seq "$passes"); do
  echo "pass $pass of $passes" >&2
  "$bin/bench.test" -test.run '^$' -test.bench "$pattern" -test.benchtime "$time" -test.cpu 1,2 >>"$log"
done

"$bin/benchstat" "$log"
echo
"$bin/ratios" <"$log"

if [[ -n ${PROXIES:-} ]]; then
  echo
  go run ./cmd/proxies -install
fi
