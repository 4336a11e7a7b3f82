#!/usr/bin/env bash
# Builds the sandbox image (sandbox-broker/sandbox:local) in the engine of DOCKER_HOST, unless it is there with the same
# content. Assembled from Debian packages where apt is at hand, which needs no registry; from images/sandbox/Dockerfile
# otherwise.
#   build-sandbox-image.sh [--mark FILE]   FILE gets the image's id, if this call built it
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"
mark=/dev/null
[ "${1:-}" != --mark ] || mark="$2"

arch="$(node scripts/sandbox-image.ts arch)"
content="$({ echo "$arch"; cat images/sandbox/* scripts/sandbox-image.ts; } | sha256sum | cut -c 1-16)"
if node scripts/sandbox-image.ts has "$content"; then
  echo 'sandbox image: up to date' >&2
  exit 0
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ "$(dpkg --print-architecture 2>/dev/null || true)" = "$arch" ] && command -v apt-get >/dev/null; then
  echo 'sandbox image: assembling it from Debian packages' >&2
  if images/sandbox/assemble.sh "$work"; then
    node scripts/sandbox-image.ts import "$content" "$work/rootfs.tar" >"$work/id"
  else
    echo 'sandbox image: that did not work' >&2
  fi
fi
if [ ! -s "$work/id" ]; then
  echo 'sandbox image: building it from images/sandbox/Dockerfile' >&2
  node scripts/sandbox-image.ts build "$content" >"$work/id"
fi
cat "$work/id" >"$mark"
echo 'sandbox image: built' >&2
