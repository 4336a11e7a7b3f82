#!/usr/bin/env bash
# npm run bench: measures the broker on a real Docker engine and a real Redis, found or started for the run. Arguments go
# to bench/main.ts. What was made is removed, what was started is stopped.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/services.sh

status=1
finish() {
  trap '' INT TERM HUP
  end_child 30
  stop_services
  exit "$status"
}
trap finish EXIT
trap 'say interrupted; exit' INT TERM HUP

ensure_node && ensure_engine && ensure_redis && scripts/build-sandbox-image.sh || exit
run node bench/main.ts "$@"
status=$?
exit
