#!/usr/bin/env bash
# Install the Debian or Ubuntu packages that some tests need and skip without: other compilers, other
# C and C++ libraries, emulators, a browser. Runs as root, or with sudo without a password.
set -euo pipefail

default=$(g++ -dumpversion 2>/dev/null | cut -d. -f1 || true)
other_gcc() { # the first installed or installable g++ of another major version
  for major in 11 12 13 14; do
    [ "$major" = "$default" ] && continue
    if "$@" "g++-$major" >/dev/null 2>&1; then
      echo "g++-$major"
      return
    fi
  done
}

wanted=()
command -v clang++ >/dev/null || wanted+=(clang)
echo '#include <string>' | clang++ -stdlib=libc++ -fsyntax-only -x c++ - 2>/dev/null ||
  wanted+=(libc++-dev libc++abi-dev)
[ -n "$(other_gcc command -v)" ] || wanted+=(other_gcc)
command -v aarch64-linux-gnu-g++ >/dev/null || wanted+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || wanted+=(qemu-user)
command -v musl-gcc >/dev/null || wanted+=(musl-tools)
command -v x86_64-w64-mingw32-g++-posix >/dev/null || wanted+=(g++-mingw-w64-x86-64-posix)
command -v wine >/dev/null || wanted+=(wine64)
command -v chromium google-chrome >/dev/null || wanted+=(chromium)
[ "${#wanted[@]}" -gt 0 ] || exit 0

command -v apt-get >/dev/null || { echo "without apt-get, tests skip what needs ${wanted[*]}"; exit 0; }
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
"${as_root[@]}" apt-get update -qq >/dev/null 2>&1 || true
for package in "${wanted[@]}"; do
  [ "$package" = other_gcc ] && package=$(other_gcc apt-cache show)
  "${as_root[@]}" apt-get install -y -qq "$package" >/dev/null 2>&1 ||
    echo "${package:-another g++} cannot be installed: tests skip what needs it"
done
