#!/bin/sh
# Installs the Debian packages listed in the files given, where they are missing and we may; else says what to do.
set -eu
missing=""
for package in $(sed -e 's/#.*//' "$@"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian packages:$missing"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null; } ||
        echo "could not install:$missing; what needs them will be skipped or say so" >&2
else
    echo "these Debian packages are missing:$missing" >&2
    echo "install them with: sudo apt-get install$missing" >&2
fi
