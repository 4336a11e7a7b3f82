# Sourced by test.sh and demo.sh, in the repository's root: finds a Docker engine and a Redis, or starts private ones.
#
#   ensure_node      node_modules and a Node that runs TypeScript
#   ensure_engine    exports DOCKER_HOST
#   ensure_redis     exports REDIS_URL
#   stop_services    stops exactly what was started here, and removes every trace of it
#   run COMMAND…     runs a command so that a signal to the script reaches the script at once; end_child ends it
#
# A private engine lives in ./.run/engine-<pid>, with a bridge of its own beside whatever else runs on the machine.
# What is needed to take it down again stands in files there, so that the next run can clear up after a killed one.

RUN_DIR="$PWD/.run"
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

start_engine() {
  local dir="$RUN_DIR/engine-$$" bridge="sbx$$" subnet octet
  mkdir -p "$RUN_DIR"
  # Its sockets' paths may have 107 bytes, the longest one inside the folder takes about 40.
  if [ "${#dir}" -gt 60 ]; then
    ln -sfn "$(mktemp -d /tmp/sbx-XXXXXX)" "$dir"
    dir="$(readlink "$dir")"
  fi
  mkdir -p "$dir"
  ENGINE_DIR="$dir"
  ENGINE_IS_PRIVATE=true
  for octet in $(seq 250 -1 200); do
    subnet="172.31.$octet"
    ip -4 route show table all | grep -qF "$subnet." || break
  done
  printf '%s\n' "$$" >"$dir/owner.pid"
  printf '%s %s\n' "$bridge" "$subnet" >"$dir/bridge"
  iptables-save >"$dir/firewall"
  ! pgrep -x dockerd >/dev/null || touch "$dir/beside"
  cat /proc/sys/net/ipv4/ip_forward >"$dir/ip-forward"
  ls -d $ENGINE_LITTER >"$dir/litter" 2>/dev/null || true
  printf '{}\n' >"$dir/daemon.json"

  ip link add "$bridge" type bridge && ip addr add "$subnet.1/24" dev "$bridge" && ip link set "$bridge" up || {
    say 'cannot make a network bridge: a private Docker engine needs CAP_NET_ADMIN'
    return 1
  }
  # In a session of its own: a Ctrl-C at the terminal is for us, who stop it in order.
  TMPDIR="$dir" setsid dockerd --config-file "$dir/daemon.json" --host "unix://$dir/docker.sock" --data-root "$dir/data" \
    --exec-root "$dir/exec" --pidfile "$dir/dockerd.pid" --bridge "$bridge" --log-level warn \
    >"$dir/dockerd.log" 2>&1 </dev/null &
  local pid=$! tries
  printf '%s\n' "$pid" >"$dir/daemon.pid"
  export DOCKER_HOST="unix://$dir/docker.sock"
  for tries in $(seq 1 300); do
    [ -S "$dir/docker.sock" ] && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  node scripts/answers.ts engine 2>/dev/null || {
    say 'the private Docker engine did not start; its last lines:'
    tail -n 10 "$dir/dockerd.log" >&2
    return 1
  }
  return_firewall "$dir"
  say "engine: a private one, $DOCKER_HOST"
}

# What dockerd and containerd leave outside of the folders they are given.
ENGINE_LITTER='/etc/docker /etc/docker/key.json /run/docker /run/containerd /opt/containerd /var/lib/docker /var/lib/containerd'

# stop_engine DIR  also works for one whose script was killed.
stop_engine() {
  local dir="$1" bridge subnet path pid alone=1 other
  [ -e "$dir/bridge" ] || { rm -rf "$dir"; return; }
  read -r bridge subnet <"$dir/bridge"
  if [ -S "$dir/docker.sock" ]; then
    DOCKER_HOST="unix://$dir/docker.sock" node scripts/engine.ts clear 2>/dev/null || true
  fi
  pid="$(cat "$dir/daemon.pid" 2>/dev/null || true)"
  if [ -n "$pid" ] && grep -qsF "$dir/" "/proc/$pid/cmdline"; then
    kill -TERM "$pid" 2>/dev/null || true
    wait_for_end "$pid" 20
  fi
  # Shims and a containerd that outlived their daemon name the folder on their command line.
  for pid in $(processes_naming "$dir/"); do
    kill -KILL "$pid" 2>/dev/null || true
    wait_for_end "$pid" 5
  done
  while read -r path; do
    umount "$path" 2>/dev/null || umount -l "$path" 2>/dev/null || true
  done < <(awk -v dir="$dir/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r)
  ip link delete "$bridge" 2>/dev/null || true

  ! pgrep -x dockerd >/dev/null || alone=0
  if [ "$alone" = 0 ]; then
    # Whichever private engine ends last knows how the machine was before the first.
    for other in "$RUN_DIR"/engine-*; do
      [ "$other" -ef "$dir" ] || [ ! -e "$other/firewall" ] || cp "$dir/firewall" "$dir/ip-forward" "$other/"
    done
  fi
  return_firewall "$dir"
  restore_firewall "$dir" "$bridge" "$subnet" "$alone"
  if [ "$alone" = 1 ]; then
    cat "$dir/ip-forward" >/proc/sys/net/ipv4/ip_forward 2>/dev/null || true
    for path in $(printf '%s\n' $ENGINE_LITTER | sort -r); do
      [ ! -e "$path" ] || grep -qxF "$path" "$dir/litter" || remove_litter "$path"
    done
  fi
  rm -rf "$dir"
  for path in "$RUN_DIR"/engine-*; do [ ! -L "$path" ] || [ -e "$path" ] || rm -f "$path"; done
}

# A file goes; a folder goes if nothing but empty folders is left in it.
remove_litter() {
  if [ -d "$1" ]; then find "$1" -depth -type d -empty -delete 2>/dev/null || true; else rm -f "$1"; fi
}

# A starting dockerd empties the chains that it shares with another one: puts the other one's rules back, once.
return_firewall() {
  [ -e "$1/beside" ] || return 0
  rm -f "$1/beside"
  iptables-save | awk '
    /^\*/ { table = $1 }
    now == 1 { have[table, $0] = 1; next }
    /^\*/ { count = 0; print }
    /^-A DOCKER/ && !((table, $0) in have) { sub(/^-A/, "-I"); line[count++] = $0 }
    /^COMMIT/ { while (count-- > 0) print line[count]; print }
  ' now=1 - now=0 "$1/firewall" | iptables-restore --noflush || say 'some firewall rules of the other Docker engine may be lost'
}

# Takes back, in one step a table, the rules of one engine's own bridge; with no other engine on the machine also every
# chain and rule of Docker's that was not there before it, and the policy of FORWARD.
restore_firewall() {
  local dir="$1" bridge="$2" subnet="$3" alone="$4"
  command -v iptables-save >/dev/null || return 0
  iptables-save | awk -v bridge="$bridge" -v subnet="$subnet." -v alone="$alone" '
    /^\*/ { table = $1 }
    now == 0 { if (/^:/) policy[table, $1] = $2; else before[table, $0] = 1; next }
    /^\*/ { flush = remove = ""; print }
    /^:/ && alone == 1 {
      if (!((table, $1) in policy) && $1 ~ /^:DOCKER/) {
        flush = flush "-F " substr($1, 2) "\n"
        remove = remove "-X " substr($1, 2) "\n"
      } else if ($1 == ":FORWARD") {
        print $1, ((table, $1) in policy ? policy[table, $1] : "ACCEPT"), "[0:0]"
      }
    }
    /^-A/ && (index($0 " ", " " bridge " ") || index($0, " " subnet) || (alone == 1 && /DOCKER/ && !((table, $0) in before))) {
      sub(/^-A/, "-D")
      print
    }
    /^COMMIT/ { printf "%s%s", flush, remove; print }
  ' now=0 "$dir/firewall" now=1 - | iptables-restore --noflush || say 'some firewall rules of the private engine may be left'
}

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
    if [ -n "$owner" ] && grep -qsE 'test\.sh|demo\.sh|bench\.sh' "/proc/$owner/cmdline"; then continue; fi
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
