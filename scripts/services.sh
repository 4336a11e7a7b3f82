# Sourced by test.sh and demo.sh, in the repository's root: finds a Docker engine and a Redis, or starts private ones.
#
#   ensure_node        node_modules and a Node that runs TypeScript
#   ensure_engine      exports DOCKER_HOST
#   ensure_redis       exports REDIS_URL
#   ensure_prometheus  puts prometheus and promtool on the PATH
#   ensure_compose     installs what docker-compose.yml is tried with
#   ensure_helm        puts helm on the PATH (scripts/helm.sh)
#   stop_services      stops exactly what was started here, and removes every trace of it
#   run COMMAND…       runs a command so that a signal to the script reaches the script at once; end_child ends it
#
# A private engine lives in ./.run/engine-<pid>, with a bridge of its own beside whatever else runs on the machine.
# What is needed to take it down again stands in files there, so that the next run can clear up after a killed one.

RUN_DIR="${SANDBOX_BROKER_RUN_DIR:-$PWD/.run}"
ENGINE_DIR=''
ENGINE_IS_PRIVATE=false
REDIS_DIR=''
REDIS_PID=''

say() { printf '%s\n' "$*" >&2; }

ensure_node() {
  if [ ! -e node_modules/.package-lock.json ]; then
    say 'installing node packages (npm ci)'
    npm ci --no-progress --loglevel=error >&2 || { say 'npm ci failed: it needs a package registry'; return 1; }
  fi
  export PATH="$PWD/node_modules/.bin:$PATH"
  # Without these a tool's compile cache stays behind in the temporary folder.
  export NODE_DISABLE_COMPILE_CACHE=1
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 24 ? 0 : 1)' || {
    say "Node 24 is needed, and $(command -v node) is $(node --version); on Linux, npm ci without --omit=optional brings it"
    return 1
  }
}

# --- packages -------------------------------------------------------------------------------------------------------

# ensure_commands WHAT COMMAND:PACKAGE…  installs the Debian packages of the commands that are not here.
ensure_commands() {
  local what="$1" pair missing=()
  shift
  for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "$what needs these Debian packages (or what they are called here): ${missing[*]}; install them, or run as root on Debian"
    return 1
  fi
  say "installing Debian packages: ${missing[*]}"
  local result=0
  APT_LOG="$(mktemp)"
  # Nothing that is installed here starts by itself: what runs is started, known and stopped below.
  if [ ! -e "$POLICY" ]; then
    APT_POLICY="$POLICY"
    printf '#!/bin/sh\nexit 101\n' >"$POLICY"
    chmod +x "$POLICY"
  fi
  {
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
  } >"$APT_LOG" 2>&1 </dev/null || result=$?
  [ "$result" = 0 ] || { say 'apt-get failed; its last lines:'; tail -n 5 "$APT_LOG" >&2; }
  forget_apt
  hash -r
  return "$result"
}

POLICY=/usr/sbin/policy-rc.d
APT_POLICY=''
APT_LOG=''

# Also called by stop_services: a signal ends the script in the middle of the installation.
forget_apt() {
  [ -z "$APT_POLICY" ] || rm -f "$APT_POLICY"
  [ -z "$APT_LOG" ] || rm -f "$APT_LOG"
  APT_POLICY='' APT_LOG=''
}

# --- engine ---------------------------------------------------------------------------------------------------------

ensure_engine() {
  clear_stale
  if [ -n "${DOCKER_HOST:-}" ]; then
    node scripts/answers.ts engine || { say "DOCKER_HOST is $DOCKER_HOST, and nothing answers there"; return 1; }
    say "engine: $DOCKER_HOST"
    return
  fi
  local socket
  for socket in /var/run/docker.sock "${XDG_RUNTIME_DIR:-/nowhere}/docker.sock" "${HOME:-/nowhere}/.docker/run/docker.sock"; do
    if [ -S "$socket" ] && DOCKER_HOST="unix://$socket" node scripts/answers.ts engine 2>/dev/null; then
      export DOCKER_HOST="unix://$socket"
      say "engine: $DOCKER_HOST"
      return
    fi
  done
  if [ "$(id -u)" != 0 ]; then
    say 'no Docker engine answers: start one, or set DOCKER_HOST, or run this as root on Debian, which starts a private one'
    return 1
  fi
  ensure_commands 'A private Docker engine' dockerd:docker.io iptables:iptables ip:iproute2 || return 1
  start_engine
}

source scripts/private-engine.sh
source scripts/helm.sh

# --- Redis ----------------------------------------------------------------------------------------------------------

ensure_redis() {
  if [ -n "${REDIS_URL:-}" ]; then
    node scripts/answers.ts redis "$REDIS_URL" || { say 'REDIS_URL is set, and nothing answers there'; return 1; }
    say 'redis: the one of REDIS_URL'
    return
  fi
  if node scripts/answers.ts redis redis://127.0.0.1:6379 2>/dev/null; then
    export REDIS_URL=redis://127.0.0.1:6379
    say "redis: $REDIS_URL"
    return
  fi
  ensure_commands 'A private Redis' redis-server:redis-server || return 1
  local port tries
  REDIS_DIR="$RUN_DIR/redis-$$"
  mkdir -p "$REDIS_DIR"
  port="$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')"
  setsid redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --dir "$REDIS_DIR" \
    >"$REDIS_DIR/log" 2>&1 </dev/null &
  REDIS_PID=$!
  printf '%s\n' "$$" >"$REDIS_DIR/owner.pid"
  printf '%s\n' "$REDIS_PID" >"$REDIS_DIR/redis.pid"
  for tries in $(seq 1 50); do
    if node scripts/answers.ts redis "redis://127.0.0.1:$port" 2>/dev/null; then
      export REDIS_URL="redis://127.0.0.1:$port"
      say "redis: a private one, $REDIS_URL"
      return
    fi
    kill -0 "$REDIS_PID" 2>/dev/null || break
    sleep 0.1
  done
  say 'the private Redis did not start; its last lines:'
  tail -n 5 "$REDIS_DIR/log" >&2
  return 1
}

# stop_redis DIR
stop_redis() {
  local pid
  pid="$(cat "$1/redis.pid" 2>/dev/null || true)"
  if [ -n "$pid" ] && grep -qs redis-server "/proc/$pid/cmdline"; then
    kill -TERM "$pid" 2>/dev/null || true
    wait_for_end "$pid" 10
  fi
  rm -rf "$1"
}

# --- Prometheus, for the tests of metrics and alerts ----------------------------------------------------------------

# Two programs out of Debian's package, and nothing of its dependencies or its service. Without them those tests fail.
ensure_prometheus() {
  local tools="$RUN_DIR/tools" folder
  export PATH="$PATH:$tools"
  if command -v prometheus >/dev/null && command -v promtool >/dev/null; then return 0; fi
  if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    say 'prometheus and promtool are not here: install them, or the tests that need them fail'
    return 0
  fi
  say 'fetching the Debian package prometheus'
  mkdir -p "$tools"
  folder="$(mktemp -d)"
  (
    cd "$folder" || exit
    apt-get download -q prometheus || { [ "$(id -u)" = 0 ] && apt-get update -q && apt-get download -q prometheus; }
    dpkg -x prometheus_*.deb . && mv usr/bin/prometheus usr/bin/promtool "$tools"
  ) >"$folder/log" 2>&1 </dev/null || { say 'that failed; its last lines:'; tail -n 5 "$folder/log" >&2; }
  rm -rf "$folder"
  hash -r
}

# --- docker-compose, for the tests of docker-compose.yml ------------------------------------------------------------

# The compose plugin of a Docker that is here, or Debian's; and HAProxy, whose image cannot be had where no registry is in
# reach. Without them those tests fail.
ensure_compose() {
  local wanted=(haproxy:haproxy redis-server:redis-server)
  docker compose version >/dev/null 2>&1 || wanted+=(docker-compose:docker-compose)
  PATH="$PATH:/usr/sbin" ensure_commands 'What tests docker-compose.yml, and fails otherwise,' "${wanted[@]}" || return 0
}

# --- both -----------------------------------------------------------------------------------------------------------

CHILD=''

# In the background and in a group of its own: bash acts on a signal only when nothing runs in its foreground.
run() {
  local result=0
  setsid "$@" </dev/null &
  CHILD=$!
  wait "$CHILD" || result=$?
  CHILD=''
  return "$result"
}

# end_child SECONDS
end_child() {
  [ -n "$CHILD" ] || return 0
  kill -TERM -- "-$CHILD" 2>/dev/null && wait_for_end "$CHILD" "$1"
  CHILD=''
}

# wait_for_end PID SECONDS  kills it when the time is over.
wait_for_end() {
  local tries
  for tries in $(seq 1 $(($2 * 10))); do
    # One of our own children stays visible until it is waited for.
    case "$(ps -o stat= -p "$1" 2>/dev/null || true)" in '' | Z*) wait "$1" 2>/dev/null; return 0 ;; esac
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
  sleep 0.2
}

processes_naming() {
  grep -lF "$1" /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3
}

# Services of an earlier run that was killed before it could stop them.
clear_stale() {
  local dir owner
  for dir in "$RUN_DIR"/engine-* "$RUN_DIR"/redis-* "$RUN_DIR"/test-*; do
    [ -e "$dir" ] || continue
    owner="$(cat "$dir/owner.pid" 2>/dev/null || true)"
    if [ -n "$owner" ] && grep -qsE '(test|demo|bench|hold-services)\.sh' "/proc/$owner/cmdline"; then continue; fi
    say "clearing up after an earlier run: $dir"
    case "$dir" in
      *engine-*) stop_engine "$(readlink -f "$dir")" ;;
      *redis-*) stop_redis "$dir" ;;
      *) rm -rf "$dir" ;;
    esac
  done
}

stop_services() {
  forget_apt
  [ -z "$REDIS_DIR" ] || stop_redis "$REDIS_DIR"
  [ -z "$ENGINE_DIR" ] || stop_engine "$ENGINE_DIR"
  REDIS_DIR='' ENGINE_DIR=''
  rmdir "$RUN_DIR" 2>/dev/null || true
}
