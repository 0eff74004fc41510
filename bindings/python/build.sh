#!/bin/sh
# build.sh PYTHON LIBRARY FOLDER [OPTION...]: makes a wheel with this shared library, in FOLDER; options go to `pip wheel`.
set -eu
python=$1 library=$2 into=$3 here=$(dirname "$0")
shift 3
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
# Elsewhere: nothing is left between the sources.
cp -r "$here/pyproject.toml" "$here/setup.py" "$here/README.md" "$here/gestalt" "$source"
cp "$library" "$source/gestalt/libgestalt.so.3"
mkdir -p "$into"
rm -f "$into"/gestalt_kv-*.whl
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$into" "$@" "$source"
