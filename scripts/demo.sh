#!/usr/bin/env bash
# npm run demo: a broker with real sandboxes, from nothing: installs what is missing, finds or starts a Docker engine,
# builds the sandbox image, starts the broker and goes through a sandbox's life over HTTP. Then the broker stays until
# Ctrl-C; with --once everything ends there. Either way what was started here is stopped and what was made is removed.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/services.sh

once=false
case "$*" in
  '') ;;
  --once) once=true ;;
  *) say 'usage: npm run demo [-- --once]'; exit 2 ;;
esac

state="$RUN_DIR/demo"
mine=false
status=1

finish() {
  trap '' INT TERM HUP
  end_child 45
  if $mine; then
    stop_orphan
    if $once && [ -s "$state/image" ] && ! $ENGINE_IS_PRIVATE; then
      node scripts/sandbox-image.ts remove "$(cat "$state/image")"
    fi
    rm -rf "$state"
  fi
  stop_services
  exit "$status"
}

# The broker ends with demo.ts, unless that was killed.
stop_orphan() {
  local pid
  pid="$(cat "$state/broker.pid" 2>/dev/null || true)"
  if [ -n "$pid" ] && grep -qsF "$state/config.yaml" "/proc/$pid/cmdline"; then
    kill -TERM "$pid" 2>/dev/null
    wait_for_end "$pid" 30
  fi
}

# One demo in a clone: it has one deployment and one folder.
claim() {
  local owner
  mkdir -p "$RUN_DIR"
  if ! mkdir "$state" 2>/dev/null; then
    owner="$(cat "$state/owner.pid" 2>/dev/null || true)"
    if [ -z "$owner" ] || grep -qs 'demo\.sh' "/proc/$owner/cmdline"; then
      say "a demo is running here already: stop it with Ctrl-C where it runs, or with: kill ${owner:-<its process id>}"
      return 1
    fi
    stop_orphan
  fi
  printf '%s\n' "$$" >"$state/owner.pid"
  mine=true
}

trap finish EXIT
# Stopping a demo that has shown everything is how it is meant to end.
trap '[ -e "$state/shown" ] && status=0 || status=130; exit' INT TERM HUP

claim && ensure_node && ensure_engine || exit
scripts/build-sandbox-image.sh --mark "$state/image" || exit
status=0
if $once; then run node scripts/demo.ts "$state" --once; else run node scripts/demo.ts "$state"; fi || status=$?
exit
