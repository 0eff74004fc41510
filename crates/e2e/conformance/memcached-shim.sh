#!/bin/sh
# Stands in for the `memcached -s SOCKET` that gomemcache's own test starts: puts a link to GESTALT_SOCKET there, behind
# which the test harness passes every byte to and from a node, and lives until it is killed, as memcached would.
set -eu
[ "$1" = "-s" ]
ln -s "$GESTALT_SOCKET" "$2"
echo "$2" > "$GESTALT_SOCKET.link"
exec sleep 600
