#!/usr/bin/env bash
# Build the source distribution, and a wheel from it without network, with the installed build
# requirements.
set -euo pipefail
cd "$(dirname "$0")/../.."

rm -f dist/*.tar.gz
.venv/bin/python -m build -q --sdist --no-isolation -o dist
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
offline=()
if unshare -rn true 2>/dev/null; then
  offline=(unshare -rn)
fi
"${offline[@]}" .venv/bin/pip wheel -q --no-build-isolation --no-deps --no-index -w "$place" dist/*.tar.gz
basename "$place"/*.whl
