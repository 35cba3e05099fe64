#!/usr/bin/env bash
# Creates the sample files of this directory with the tools that scripts/setup.sh installs.
# The files are in the repository, so running it is rarely necessary.
set -euo pipefail
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

ffmpeg -nostdin -v error -y -f lavfi -i 'mandelbrot=size=960x640:start_scale=0.02:end_scale=0.001' -frames:v 1 -ss 1 "$tmp/m.png"
vips jpegsave "$tmp/m.png" photo.jpg --Q 88 --optimize-coding --strip
ffmpeg -nostdin -v error -y -f lavfi -i 'mandelbrot=size=320x214:rate=15:end_scale=0.05' -f lavfi -i 'sine=frequency=330:beep_factor=4' \
	-t 4 -c:v libx264 -preset slow -crf 30 -pix_fmt yuv420p -vf scale=320:214 -c:a aac -b:a 48k -movflags +faststart clip.mp4
vips thumbnail photo.jpg "$tmp/small.jpg[Q=80]" 480

cat >"$tmp/report.md" <<'MD'
---
title: Harvest report
---

# Summary

The orchard had a good year. *Äpfel*, λεμόνια and 林檎 were all picked before the
first frost; see [the almanac](https://example.com/almanac) for the weather.

![The orchard from above](small.jpg){width=9cm}

# Figures

| Fruit    | Trees | Crates | Change |
|----------|------:|-------:|-------:|
| Apples   |   120 |    864 |  +12 % |
| Pears    |    45 |    230 |   −3 % |
| Cherries |    60 |    410 |  +27 % |

# Next steps

1. Prune the pear trees.
2. Order **four** new ladders.
3. Repair the press:
    - new belt
    - oil
MD
(cd "$tmp" && pandoc -o report.docx report.md)
cp "$tmp/report.docx" .
for n in one two; do
	printf '# Chapter %s\n\nThis is chapter %s of two. See [the site](https://example.com/%s).\n\n## Details of %s\n\nNothing more.\n' $n $n $n $n |
		pandoc -f markdown -o "$tmp/$n.docx"
	soffice "-env:UserInstallation=file://$tmp/profile" --headless --norestore \
		--convert-to 'pdf:writer_pdf_Export:{"ExportBookmarks":{"type":"boolean","value":"true"}}' --outdir . "$tmp/$n.docx" >/dev/null
done
