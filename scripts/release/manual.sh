#!/usr/bin/env bash
# Writes the manual pages and shell completions of a package:
#
#   scripts/release/manual.sh DIR [REFSERVER]
#
# REFSERVER is a built program for this machine. Without it, the script builds one.
set -euo pipefail

to=$1
program=${2:-}
if [ -z "$program" ]; then
	program=$(mktemp)
	trap 'rm -f "$program"' EXIT
	go build -o "$program" ./cmd/refserver
fi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} # the date of the pages
rm -rf "$to"
mkdir -p "$to/man1"
"$program" man "$to/man1"
gzip -9n "$to"/man1/*
for shell in bash zsh fish; do
	"$program" completion "$shell" >"$to/refserver.$shell"
done
