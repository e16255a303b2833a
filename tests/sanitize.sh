#!/usr/bin/env bash
# Run the tests on a build with sanitizers: sanitize.sh address,undefined [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizers=$1
shift
name=${sanitizers//,/-}
environment=.venv-$name

if [ ! -x "$environment/bin/python" ]; then
  python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
  "$python" -m venv "$environment"
fi
"$environment/bin/python" -m pip install -q --upgrade "pip>=25.1"
"$environment/bin/pip" install -q "scikit-build-core>=0.10" "pybind11>=2.13" "cmake>=3.18" ninja
"$environment/bin/pip" install -q --group test
"$environment/bin/pip" install -q --no-build-isolation "-Cbuild-dir=build/$name" \
  -Cinstall.strip=false -Ccmake.build-type=None \
  "-Ccmake.define.PASSLIB_SANITIZE=$sanitizers" -Ccmake.define.CMAKE_CXX_FLAGS="-O0 -g1" -e ".[all]"

# The runtime must be loaded before Python's own libraries. Leaks are not checked, because Python never
# frees some of its memory. Libraries built without sanitizers are used unchanged.
runtime=libasan.so
case $sanitizers in *thread*) runtime=libtsan.so ;; esac
export LD_PRELOAD="$(g++ -print-file-name=$runtime) $(g++ -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:suppressions=$PWD/tests/tsan.supp
# No optimization: it takes two to four times as long for each of a hundred files.
# No check of enumerations: some test libraries return numbers outside of theirs on purpose.
export PASSLIB_SANITIZED=$sanitizers
export PASSLIB_TEST_FLAGS="-fsanitize=$sanitizers -fno-sanitize=enum -fno-omit-frame-pointer -g1 -O0"
# Output of a sanitizer that ends the process must not be captured, and -v names a failed test at
# once: a run takes an hour.
exec "$environment/bin/python" -m pytest -p no:cacheprovider --capture=sys -v "${@:-tests}" \
  --ignore tests/interop
