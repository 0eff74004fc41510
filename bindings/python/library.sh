#!/bin/sh
# library.sh PYTHON GLIBC: builds the shared library for glibc GLIBC (such as 2.17) and later, with zig from PyPI as its linker, in
# target/MACHINE-unknown-linux-gnu/library. PYTHON makes the environment for that, target/zig, if it is not there.
set -eu
python=$1 glibc=$2
cd "$(dirname "$0")/../.."
tools=$PWD/target/zig
if ! test -x "$tools/bin/cargo-zigbuild"; then
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check cargo-zigbuild==0.24.1 ziglang==0.17.1
fi
PATH=$tools/bin:$PATH "${CARGO:-cargo}" zigbuild --quiet --profile library -p gestalt-c --target "$(uname -m)-unknown-linux-gnu.$glibc"
