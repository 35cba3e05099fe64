#!/usr/bin/env bash
# Installs what Filewright needs on Debian or Ubuntu and is not there yet.
#
#   scripts/setup.sh run     C libraries to build with, engines, fonts
#   scripts/setup.sh test    the same, and the tools that judge test results
#
# It does nothing, and needs no root, if everything is installed already.
set -euo pipefail

need=()
want() { # want PACKAGE COMMAND...: a package, and how to tell that it is there
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || need+=("$package")
}
installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
packages() { local p; for p in "$@"; do want "$p" installed "$p"; done; }

want gcc command -v gcc
want pkg-config command -v pkg-config
want libvips-dev pkg-config --exists 'vips >= 8.10'

want ffmpeg command -v ffmpeg
want qpdf command -v qpdf
want pandoc command -v pandoc
# The plain packages, not those ending in -nogui: without the user interface
# files a long-running LibreOffice crashes on documents with comments.
packages libreoffice-writer libreoffice-calc libreoffice-impress libreoffice-draw libreoffice-math python3-uno
# Latin, Greek, Cyrillic, Arabic, Hebrew, Indic …; Chinese, Japanese, Korean; emoji.
packages fonts-dejavu-core fonts-liberation fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji

if [ "${1:-run}" = test ]; then
	want poppler-utils command -v pdftotext
	want libimage-exiftool-perl command -v exiftool
	want libvips-tools command -v vipsheader
	packages fonts-urw-base35
	want unzip command -v unzip
	want zip command -v zip
	want p7zip-full command -v 7z
	want file command -v file
	want curl command -v curl
fi

if [ ${#need[@]} -eq 0 ]; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "This script installs with apt-get, which is not here. Please install what these Debian packages contain:" >&2
	printf '  %s\n' "${need[@]}" >&2
	exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "As root, please run: apt-get install --no-install-recommends ${need[*]}" >&2
		exit 1
	fi
	as_root=(sudo)
fi
echo "Installing: ${need[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${need[@]}" >/dev/null
