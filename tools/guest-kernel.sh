#!/bin/sh
# Unpacks Debian's kernel of a series, with its modules, into a directory: for the tests that run it in QEMU. Nothing is
# installed. Where it cannot be had, those tests say so and are skipped.
#   guest-kernel.sh 6.12 target/kernels/6.12
set -eu
series=$1 place=$2
[ -e "$place/release" ] && exit 0
without() {
    echo "no kernel for the tests in QEMU: $1; they will be skipped" >&2
    exit 0
}
newest() {
    apt-cache search --names-only "^linux-image-$series\.[0-9.+-]+(deb[0-9]+)?-amd64\$" | cut -d' ' -f1 | sort -V | tail -1
}
command -v apt-get >/dev/null || without "no apt-get"
command -v depmod >/dev/null || without "kmod is missing"
[ "$(dpkg --print-architecture)" = amd64 ] || without "this is not amd64"
package=$(newest)
if [ -z "$package" ] && [ "$(id -u)" -eq 0 ]; then
    apt-get update -qq || true
    package=$(newest)
fi
[ -n "$package" ] || without "no linux-image-$series in the package lists"
mkdir -p "$place"
trap 'rm -rf "$place"' EXIT
(cd "$place" && apt-get download -qq -o APT::Sandbox::User=root "$package") || without "$package could not be fetched"
dpkg-deb -x "$place"/*.deb "$place"
rm "$place"/*.deb
release=$(ls "$place/lib/modules")
depmod -b "$place" "$release"
echo "$release" >"$place/release"
trap - EXIT
echo "unpacked $package into $place"
