#!/usr/bin/env bash
# Writes the modules linked into a program in CycloneDX format.
#
#   scripts/release/sbom.sh PROGRAM FILE
set -euo pipefail

file=$(realpath -m "$2")
program=$(realpath "$1")
cd "$(dirname "$0")/../../internal/tools/release"
GOFLAGS='' GOWORK=off exec go tool cyclonedx-gomod bin -json -output "$file" "$program"
