#!/usr/bin/env bash
# npm run services: what a broker needs on this machine, for trying things by hand: a Docker engine and a Redis, found or
# started, the sandbox image, prometheus and promtool. Prints the one line that makes another terminal use them, and stays
# until Ctrl-C; then what was started here is stopped, and everything in it is gone.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/services.sh

status=1
mine=false
file="$RUN_DIR/services.env"
finish() {
  trap '' INT TERM HUP
  end_child 5
  ! $mine || rm -f "$file"
  stop_services
  exit "$status"
}
trap finish EXIT
# Stopping is how it is meant to end, once it stands.
trap '$mine && status=0 || status=130; exit' INT TERM HUP

[ "$#" = 0 ] || { say 'usage: npm run services'; status=2; exit; }
holder="$(sed -n 's/^# held by //p' "$file" 2>/dev/null)"
if [ -n "$holder" ] && grep -qs 'hold-services\.sh' "/proc/$holder/cmdline"; then
  say "services are held here already: stop them with Ctrl-C where they run, or with: kill $holder"
  exit
fi
ensure_node && ensure_engine && ensure_redis && ensure_prometheus && scripts/build-sandbox-image.sh || exit
mine=true
cat >"$file" <<ENV
# held by $$
export DOCKER_HOST='$DOCKER_HOST' REDIS_URL='$REDIS_URL' PATH="\$PATH:$RUN_DIR/tools"
ENV
say "ready; in another terminal, in this folder:  . .run/services.env"
say 'Ctrl-C stops what was started here'
run tail -f /dev/null
