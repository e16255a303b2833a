#!/usr/bin/env bash
# Build a wheel for the Python of .venv, repair it, and test it outside the repository.
set -euo pipefail
cd "$(dirname "$0")/../.."
limit=4000000

rm -rf build/unrepaired dist/*.whl
mkdir -p dist
# Uses the existing build directory.
.venv/bin/pip wheel -q --no-build-isolation --no-deps -Cbuild-dir=build/dev -w build/unrepaired .
PATH="$PWD/.venv/bin:$PATH" .venv/bin/auditwheel repair -w dist build/unrepaired/*.whl
wheel=$(echo dist/*.whl)
size=$(stat -c %s "$wheel")
echo "$wheel: $size bytes"
if [ "$size" -ge "$limit" ]; then
  echo "the wheel must be smaller than $limit bytes" >&2
  exit 1
fi

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place/environment"
"$place/environment/bin/pip" install -q "$wheel[run]" cmake
cp -r tests/data "$place/data"
cp tests/packaging/smoke.py "$place"
cd "$place"
environment/bin/python smoke.py data
