#!/usr/bin/env bash
# Installs the missing dependencies of Filewright on Debian or Ubuntu.
#
#   scripts/setup.sh serve   engines, libraries and fonts to run a built server
#   scripts/setup.sh slim    fewer of them: pictures, audio, video, PDF files, archives and data, but no
#                            documents, web pages and recognition of text
#   scripts/setup.sh run     like serve, and Go, the C compiler and headers to build it
#   scripts/setup.sh test    the same, and the tools that judge test results
#   scripts/setup.sh bench   the same, and the tools for comparison in benchmarks
#   scripts/setup.sh release like run, and the tools that build releases for other machines
#
# If nothing is missing it does nothing and needs no root.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
export PATH="$root/.tools/go/bin:$PATH"

need=()
want() { # want PACKAGE COMMAND...: needs PACKAGE unless COMMAND succeeds
	local package=$1
	shift
	"$@" >/dev/null 2>&1 || need+=("$package")
}
installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
packages() { local p; for p in "$@"; do want "$p" installed "$p"; done; }

mode=${1:-run}
if [ "$mode" = serve ] || [ "$mode" = slim ]; then
	libvips() { ldconfig -p | grep -q 'libvips\.so\.42'; }
	want libvips42 libvips
	packages ca-certificates # for HTTPS to buckets and webhook receivers
else
	# An old Go downloads the toolchain of go.mod itself, unless it is older than 1.21 or
	# GOTOOLCHAIN forbids it.
	usable_go() { (cd "$root" && go list -m); }
	fetch_go=no
	if ! usable_go >/dev/null 2>&1; then
		fetch_go=yes
		packages ca-certificates
		want curl command -v curl
		want unzip command -v unzip
	fi
	want gcc command -v gcc
	want libc6-dev test -e /usr/include/stdio.h
	want pkg-config command -v pkg-config
	want libvips-dev pkg-config --exists 'vips >= 8.10'
fi

want ffmpeg command -v ffmpeg
want qpdf command -v qpdf
want poppler-utils command -v pdftocairo # SVG of PDF pages (1 MB)
want libraw-bin command -v simple_dcraw # raw photos of cameras (2 MB)
want libjpeg-turbo-progs command -v jpegtran # turns JPEG photos without losses (0.4 MB)
want libmobi-tools command -v mobitool # books of Mobipocket and Kindle (0.2 MB)
want libarchive-tools command -v bsdtar # disc images, cabinets, packages; writes 7z (0.2 MB)
packages fonts-dejavu-core fonts-liberation
choose_browser=no
if [ "$mode" != slim ]; then
	want ghostscript command -v gs # PostScript, and PDF/A of existing files (50 MB with its fonts)
	want pandoc command -v pandoc
	# Character recognition: detection of orientation and script, and the languages of the
	# scripts that most people read (70 MB). Other languages have packages, too.
	packages tesseract-ocr tesseract-ocr-osd
	for language in eng deu fra spa ita por nld pol ces ron hun swe tur vie ind rus ukr bul ell ara fas heb hin ben tam tel tha chi-sim chi-tra jpn kor; do
		packages "tesseract-ocr-$language"
	done
	# Not the packages ending in -nogui: without the user interface
	# files a long-running LibreOffice crashes on documents with comments.
	packages libreoffice-writer libreoffice-calc libreoffice-impress libreoffice-draw libreoffice-math python3-uno
	# An allocator with which LibreOffice needs a tenth less processor time.
	packages libjemalloc2
	# Web pages, Markdown, text and CSV to PDF. The headless shell is smaller
	# and much faster than the whole browser. Without either, LibreOffice converts them.
	browser() { local p; for p in chromium-headless-shell chrome-headless-shell chromium google-chrome-stable google-chrome; do command -v "$p" && return; done; return 1; }
	browser >/dev/null || choose_browser=yes
	# Latin, Greek, Cyrillic, Arabic, Hebrew, Indic …; Chinese, Japanese, Korean; emoji
	# in colour, and as outlines for LibreOffice before 7.5, which cannot print colours;
	# Carlito and Caladea, which have the metrics of the Calibri and Cambria of most office documents.
	# dejavu-extra has a font for formulas.
	packages fonts-dejavu-extra fonts-crosextra-carlito fonts-crosextra-caladea
	packages fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji fonts-symbola
fi

if [ "$mode" = test ] || [ "$mode" = bench ]; then
	want libimage-exiftool-perl command -v exiftool
	want libvips-tools command -v vipsheader
	packages fonts-urw-base35
	want unzip command -v unzip
	want zip command -v zip
	want p7zip-full command -v 7z
	want file command -v file
	want bzip2 command -v bzip2
	want xz-utils command -v xz
	want zstd command -v zstd
	want lzip command -v lzip
	want python3 command -v python3
	want curl command -v curl
	# The dashboard tests need a whole browser, not the headless shell. Their accessibility
	# checks need axe-core, which comes from npm.
	whole_browser() { command -v chromium || command -v google-chrome-stable || command -v google-chrome; }
	want chromium whole_browser
	want nodejs command -v node
	want npm command -v npm
	# The tests run the PHP program of the quickstart (16 MB).
	want php-cli command -v php
	packages php-curl
	# The tests build the package of the Python client, and run a generator of clients, which is written in
	# Java (200 MB), with what its client imports.
	packages python3-pip python3-setuptools python3-wheel python3-urllib3 python3-six python3-dateutil python3-certifi
	want default-jre-headless command -v java
	# Tests start their own servers, without a system service.
	postgres() { command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb'; }
	want postgresql postgres
fi

if [ "$mode" = release ]; then
	want mmdebstrap command -v mmdebstrap
	want gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
	packages libc6-dev-arm64-cross
fi

if [ "$mode" = bench ]; then
	want mupdf-tools command -v mutool
fi

# go_toolchain installs the official Go toolchain like the go command: from Go's module
# proxy, at the version with the checksums below.
go_toolchain() {
	local version=1.26.8 arch sum url
	if [ "$mode" = serve ] || [ "$mode" = slim ] || [ $fetch_go = no ]; then
		return
	fi
	case $(uname -m) in
	x86_64) arch=amd64 sum=30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7 ;;
	aarch64) arch=arm64 sum=02b36b6787b3ac767668f630e2998df45a3b1f9ffee08d1bf3ef6487cd658d99 ;;
	*)
		echo "Please install Go 1.26 or later: this script has no toolchain for $(uname -m)." >&2
		exit 1
		;;
	esac
	url=${GOPROXY:-https://proxy.golang.org}
	url=${url%%[,|]*}/golang.org/toolchain/@v/v0.0.1-go$version.linux-$arch.zip
	echo "Installing: Go $version in .tools/go"
	mkdir -p "$root/.tools"
	(
		cd "$root/.tools"
		rm -rf go golang.org go.zip
		curl -fsSL --retry 3 -o go.zip "$url"
		echo "$sum  go.zip" | sha256sum --check --quiet
		unzip -q go.zip
		mv "golang.org/toolchain@v0.0.1-go$version.linux-$arch" go
		rm -r golang.org go.zip
	)
}

# go_tools builds the S3 server and the generator of Go clients for the tests, or the release tools,
# into the build cache of Go.
go_tools() {
	if [ "$mode" = test ] || [ "$mode" = bench ]; then
		(cd "$root/internal/tools/versitygw" && GOFLAGS='' GOWORK=off go tool -n versitygw >/dev/null)
		(cd "$root/internal/tools/oidcprovider" && GOFLAGS='' GOWORK=off go tool -n oidcprovider >/dev/null)
		(cd "$root/internal/tools/kubecheck" && GOFLAGS='' GOWORK=off go tool -n kubecheck >/dev/null)
		(cd "$root/internal/tools/oapi-codegen" && GOFLAGS='' GOWORK=off go tool -n oapi-codegen >/dev/null && GOFLAGS='' GOWORK=off go build github.com/oapi-codegen/runtime/...)
	fi
	if [ "$mode" = bench ] && [ ! -x "$root/benchmarks/.tools/bin/tusd" ]; then
		(cd "$root/internal/tools/tusd" && GOFLAGS='' GOWORK=off go build -o "$root/benchmarks/.tools/bin/tusd" github.com/tus/tusd/v2/cmd/tusd)
	elif [ "$mode" = release ]; then
		(cd "$root/internal/tools/release" && GOFLAGS='' GOWORK=off go tool -n goreleaser >/dev/null && GOFLAGS='' GOWORK=off go tool -n cyclonedx-gomod >/dev/null)
	fi
}

# from_npm installs the packages of tests at the versions of their lock files: axe-core for the
# dashboard (3 MB), and the generators, compilers and linters for clients with a client of MCP (200 MB).
from_npm() {
	local dir
	if [ "$mode" != test ] && [ "$mode" != bench ]; then
		return
	fi
	for dir in internal/browsertest clients/generators; do
		if ! cmp -s "$root/$dir/package-lock.json" "$root/$dir/node_modules/.installed"; then
			echo "Installing: packages in $dir/node_modules"
			(cd "$root/$dir" && npm ci --silent --no-audit --no-fund --ignore-scripts && cp package-lock.json node_modules/.installed)
		fi
	done
}

# from_package takes one program out of a package that would also start a server.
from_package() { # from_package PROGRAM PACKAGE FILE
	local dir
	if [ "$mode" != test ] && [ "$mode" != bench ] || command -v "$1" >/dev/null || [ -x "/$3" ] || [ -x "$root/.tools/$3" ]; then
		return
	fi
	echo "Installing: $1 in .tools"
	if ! listed "$2"; then
		if [ "$(id -u)" -eq 0 ]; then apt-get update -qq; else sudo apt-get update -qq; fi
	fi
	dir=$(mktemp -d)
	chmod 755 "$dir" # apt-get downloads as another user
	(cd "$dir" && apt-get download -qq "$2" 2>/dev/null)
	mkdir -p "$root/.tools"
	dpkg-deb --fsys-tarfile "$dir/$2"_*.deb | tar -x -C "$root/.tools" "./$3"
	rm -r "$dir"
}

# sharp has no Debian package. Without it the comparison reports it as missing.
sharp() {
	local dir=$root/benchmarks/.tools version=0.34.5
	if [ "$mode" != bench ] || [ -d "$dir/node_modules/sharp" ]; then
		return
	fi
	mkdir -p "$dir"
	echo "Installing: sharp $version in benchmarks/.tools"
	(cd "$dir" && echo '{"private": true}' >package.json && npm install --silent --no-audit --no-fund "sharp@$version") ||
		echo "sharp could not be installed: the comparison does without it" >&2
}

# listed reports whether the package lists have a package. Without lists, apt-cache knows the
# installed packages, but no file of them.
listed() { apt-cache show "$1" 2>/dev/null | grep -q '^Filename:'; }

# offered prints the available browser package, if any.
offered() {
	local p
	for p in chromium-headless-shell chromium; do
		if listed "$p"; then
			echo "$p"
			return
		fi
	done
}

# With package lists but no browser package, another apt-get update would not help.
if [ $choose_browser = yes ] && listed bash && [ -z "$(offered)" ]; then
	choose_browser=no
fi
# beside installs everything that has no Debian package.
beside() {
	go_toolchain
	go_tools
	from_npm
	# The alerting rules are checked by promtool (50 MB), and tests run the service behind nginx (1 MB) and
	# Caddy (36 MB).
	from_package promtool prometheus usr/bin/promtool
	from_package nginx nginx usr/sbin/nginx
	from_package caddy caddy usr/bin/caddy
	sharp
}
finished() { # exits if no package is missing
	if [ ${#need[@]} -eq 0 ]; then
		beside
		exit 0
	fi
}
if [ $choose_browser = no ]; then
	finished
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
"${as_root[@]}" apt-get update -qq
if [ $choose_browser = yes ]; then
	mapfile -t -O ${#need[@]} need < <(offered)
fi
finished
echo "Installing: ${need[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${need[@]}" >/dev/null
beside
