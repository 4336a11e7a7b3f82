#!/usr/bin/env bash
# Types, lint and format, import directions: all that can be told without running the broker. Takes seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"
tsc -p .
biome check .
vitest run --project unit test/unit/imports.test.ts --reporter=dot
