#!/usr/bin/env bash
# Unpacks the Debian packages for linking refserver for another architecture into
# .tools/sysroot-ARCH. It installs nothing on this system and runs nothing from the packages.
#
#   scripts/release/sysroot.sh arm64
set -euo pipefail

arch=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
sysroot=$root/.tools/sysroot-$arch
if [ -e "$sysroot/.complete" ]; then
	exit 0
fi
rm -rf "$sysroot"
mkdir -p "$root/.tools"
echo "Unpacking: libvips for $arch in .tools/sysroot-$arch"
mmdebstrap --quiet --mode=root --variant=extract --architectures="$arch" --include=libvips-dev,libc6-dev bookworm "$sysroot"
# The linker would follow absolute symbolic links into this system.
find "$sysroot/usr/lib" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
	ln -sfn "$sysroot$(readlink "$link")" "$link"
done
touch "$sysroot/.complete"
