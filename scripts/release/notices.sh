#!/usr/bin/env bash
# Prints the licences of the modules linked into refserver.
set -euo pipefail

cd "$(dirname "$0")/../.."
cat <<'TEXT'
Filewright is under the Apache License 2.0, see LICENSE. The program refserver contains the
Go modules below, and the standard library of Go, each under its own licence. It loads
libvips (LGPL 2.1 or later) and the libraries that libvips needs when it starts. LibreOffice,
Chromium, ffmpeg, pandoc, qpdf, bsdtar, LibRaw, jpegtran (libjpeg-turbo), pdftocairo (poppler), mobitool (libmobi) and Tesseract are programs of their own that it runs.
TEXT
section() { printf '\n%s\n%s\n%s\n\n' "$(printf '=%.0s' {1..80})" "$1" "$(printf '=%.0s' {1..80})"; }
section "Go $(go env GOVERSION)"
cat "$(go env GOROOT)/LICENSE"
go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/refserver | sort -u |
	while read -r path version dir; do
		found=no
		for file in "$dir"/[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* "$dir"/COPYING* "$dir"/NOTICE*; do
			if [ -f "$file" ]; then
				section "$path $version: $(basename "$file")"
				cat "$file"
				found=yes
			fi
		done
		if [ $found = no ]; then
			echo "no licence in $path $version" >&2
			exit 1
		fi
	done
