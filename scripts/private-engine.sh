# Sourced by services.sh, whose names it uses: a Docker engine of this run's own, with a bridge of its own beside whatever
# else runs on the machine, and its end without a trace.

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
