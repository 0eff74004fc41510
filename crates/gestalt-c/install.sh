#!/bin/sh
# install.sh LIBRARIES PREFIX: puts what was built into LIBRARIES below PREFIX, with the header and a file for pkg-config.
set -eu
from=$1 prefix=$2 here=$(dirname "$0")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
prefix=$(cd "$prefix" && pwd)
cp "$here/include/gestalt.h" "$prefix/include/"
cp "$from/libgestalt_c.a" "$prefix/lib/libgestalt.a"
# Not over a file that a program has mapped.
rm -f "$prefix/lib/libgestalt.so.3"
cp "$from/libgestalt_c.so" "$prefix/lib/libgestalt.so.3"
ln -sf libgestalt.so.3 "$prefix/lib/libgestalt.so"
cat > "$prefix/lib/pkgconfig/gestalt.pc" <<PC
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: gestalt
Description: A client of Gestalt, the erasure-coded in-memory key-value store
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lgestalt
Libs.private: -lpthread -ldl -lm
PC
