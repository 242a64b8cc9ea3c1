#!/usr/bin/env bash
# End-to-end tests: `goodput serve` in front of real servers, under real load.
#
#   ./run.sh                 everything, about 3 minutes
#   ./run.sh -run Drain      arguments are passed to `go test`
#   PART=0/2 ./run.sh        every other test
#   E2E_LONG=1 ./run.sh      the soak with large bodies lasts 60 s, and the rolling
#                            restart 100,000 requests
#
# It needs Debian or Ubuntu and Go. Programs that are missing are installed with
# apt-get, which takes root; nothing that is installed is started as a system
# service. Every server runs on loopback, on a free port, with its data in a
# temporary directory, and ends with the tests.
#
# With CI=true a program that is missing in spite of that is a failure; without
# it the tests that need the program are skipped.
set -euo pipefail
cd "$(dirname "$0")"

# command:package
needed=(
	nginx:nginx haproxy:haproxy initdb:postgresql
	wrk:wrk h2load:nghttp2-client curl:curl
	python3:python3 websockets:python3-websockets chromium:chromium
	prometheus:prometheus jq:jq
)

have() {
	command -v "$1" >/dev/null 2>&1 && return
	# Debian keeps the server programs of PostgreSQL and nginx off a user's PATH, and a
	# module of its Python is a directory.
	compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null || [ -x "/usr/sbin/$1" ] ||
		[ -d "/usr/lib/python3/dist-packages/$1" ]
}

missing=()
for pair in "${needed[@]}"; do
	have "${pair%%:*}" || missing+=("${pair##*:}")
done

echo "e2e: this starts PostgreSQL, nginx, HAProxy, Python's http.server, Prometheus, small services and goodput, all on loopback and all ended afterwards."
if ((${#missing[@]})); then
	echo "e2e: this installs with apt-get, without starting any of it: ${missing[*]}"
	if [ "$(id -u)" -ne 0 ]; then
		echo "e2e: installing takes root. Run this as root, or first: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	install() {
		# RUNLEVEL=1 keeps Debian from starting what it installs.
		RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
	}
	# On a fresh machine apt knows no packages, on an old one outdated ones.
	install >/dev/null 2>&1 || { apt-get update && install; }
else
	echo "e2e: everything it needs is installed."
fi
if ! command -v go >/dev/null; then
	echo "e2e: go is not on the PATH: https://go.dev/doc/install" >&2
	exit 1
fi

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
echo "e2e: building goodput and the service"
export GOWORK=off # this module is not part of the workspace
(cd ../cmd/goodput && go build -o "$built/goodput" .)
go build -o "$built/service" ./service

chosen=()
if [[ ${PART:-} == */* ]]; then
	names=$(go test -list . ./... | awk -v part="$PART" 'BEGIN { split(part, p, "/") } /^Test/ && n++ % p[2] == p[1] { printf "%s%s", sep, $1; sep = "|" }')
	chosen=(-run "^($names)\$")
fi

# The timeout is three times what the tests take on two busy cores.
E2E_PROGRAM="$built/goodput" E2E_SERVICE="$built/service" \
	go test -count=1 -timeout 10m -v "${chosen[@]}" "$@" ./...
