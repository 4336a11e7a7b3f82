#!/usr/bin/env bash
# npm test: all tests against a real Docker engine and a real Redis, found or started for the run (scripts/services.sh).
# Arguments go to vitest: `npm test -- test/unit`, `npm test -- -t 'A-04'`. Where only hermetic tests are asked for,
# no service is needed. Afterwards nothing of the run may be left: no container, network, volume, process or temporary
# file. The last line is always `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/services.sh

passed=0
failed=0
verdict=1
work=''

# Whatever ends the run: services are stopped and the verdict is the last word.
finish() {
  trap '' INT TERM
  end_child 15
  [ -z "$work" ] || rm -rf "$work" "$RUN_DIR/test-$$"
  stop_services
  [ "$verdict" = 0 ] || [ "$failed" -gt 0 ] || failed=1
  [ "$failed" = 0 ] || verdict=1
  echo "$passed passed, $failed failed"
  exit "$verdict"
}
trap finish EXIT
trap 'say interrupted; exit' INT TERM HUP

# --- what is asked for ----------------------------------------------------------------------------------------------

ensure_node || exit
mkdir -p "$RUN_DIR/test-$$"
printf '%s\n' "$$" >"$RUN_DIR/test-$$/owner.pid"
work="$RUN_DIR/test-$$/work"
# Tests put sockets into the temporary folder, and a socket's path may have 107 bytes.
if [ "${#work}" -gt 50 ]; then work="$(mktemp -d /tmp/sbt-XXXXXX)"; fi
mkdir -p "$work/tmp"

passes=(unit real)
case " $* " in *' --project'*) passes=('') ;; esac
real=true
if [ "$#" -gt 0 ] && listed="$(vitest list --filesOnly "$@" 2>/dev/null)"; then
  grep -q '\.real\.test\.ts' <<<"$listed" || real=false
  if [ "${passes[0]}" = unit ] && $real && ! grep -q '[^l]\.test\.ts' <<<"$listed"; then passes=(real); fi
fi
if $real; then
  ensure_engine && ensure_redis && scripts/build-sandbox-image.sh || exit
  case "${listed:-test/deploy}" in *test/deploy*) ensure_prometheus && ensure_compose ;; esac
  case "${listed:-test/deploy}" in test/deploy | *test/deploy/helm*) ensure_helm ;; esac
  node scripts/engine.ts inventory | sort >"$work/before" || exit
fi

# --- the tests ------------------------------------------------------------------------------------------------------

result=0
for pass in "${passes[@]}"; do
  if [ "$pass" = real ] && ! $real; then continue; fi
  run env TMPDIR="$work/tmp" SANDBOX_BROKER_TALLY="$work/tally" SANDBOX_BROKER_RUN="test-$$" \
    vitest run --passWithNoTests ${pass:+--project "$pass"} "$@" || result=1
done
while read -r good bad; do
  passed=$((passed + good))
  failed=$((failed + bad))
done < <(cat "$work/tally" 2>/dev/null)
if [ $((passed + failed)) = 0 ]; then
  say '✗ no test was executed'
  result=1
fi

# --- what is left ---------------------------------------------------------------------------------------------------

# Processes of the run are known by a variable of their environment; containers' processes do not have it.
processes_left() {
  local pid
  for pid in $(grep -lzx "SANDBOX_BROKER_RUN=test-$$" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3); do
    printf 'process %s %s\n' "$pid" "$(ps -o args= -p "$pid" 2>/dev/null)"
  done
}

left() {
  if $real; then
    node scripts/engine.ts inventory | sort >"$work/after" || echo 'the engine does not answer any more'
    comm -13 "$work/before" "$work/after"
  fi
  processes_left
  find "$work/tmp" -mindepth 1 -maxdepth 1 -printf 'temporary %p\n'
}

# What ended just now may take a moment to go.
for attempt in $(seq 1 20); do
  leaks="$(left)"
  [ -n "$leaks" ] || break
  sleep 0.25
done
if [ -n "$leaks" ]; then
  say '✗ left behind by the tests:'
  sed 's/^/    /' <<<"$leaks" >&2
  failed=$((failed + $(wc -l <<<"$leaks")))
  for pid in $(awk '$1 == "process" { print $2 }' <<<"$leaks"); do kill -KILL "$pid" 2>/dev/null; done
fi
verdict="$result"
exit
