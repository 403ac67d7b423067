#!/bin/sh
# Builds the Java peers: target/{d27,d31,d33}/classes and target/{d27,d31,d33}/cp.txt. Arguments: the profiles; default all.
set -eu
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- d27 d31 d33
for peer in "$@"; do
    mvn -q -B -P "$peer" process-classes
done
