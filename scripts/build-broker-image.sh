#!/usr/bin/env bash
# Makes the broker's image (sandbox-broker/broker:local) in the engine of DOCKER_HOST, unless it is there with the same
# content. Assembled from this machine's Node and node_modules where they fit the engine, which needs no registry; from
# the Dockerfile otherwise, which does.
#   build-broker-image.sh [--dockerfile]   --dockerfile: from the Dockerfile in any case
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"
exec node scripts/broker-image.ts "$@"
