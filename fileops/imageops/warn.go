package imageops

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// warn records a warning for each kind of content that a conversion by p drops.
func (e *Engine) warn(ctx context.Context, job *fileops.Job, src source, h header, p plan) error {
	switch {
	case p.all, h.pages < 2, src.format == format.TIFF: // nothing is dropped
	case e.animates(src.format), src.format == format.PNG, src.format == format.JXL:
		job.Warn(fileops.WarnAnimationDropped, "The animation has %d frames; the result is the first one.", h.pages)
	default:
		job.Warn(fileops.WarnPagesDropped, "The file has %d pictures; the result is the first one.", h.pages)
	}
	if isSequence(src) {
		job.Warn(fileops.WarnAnimationDropped, "The file is an image sequence; the result is one frame.")
	}
	if h.cmyk {
		warnCMYK(job)
	}
	warnHDR(job, src, h)
	warnMotion(job, src)
	// Drawings normally have no background.
	if !h.alpha || !opaque(p) || p.background != nil || src.format == format.SVG {
		return nil
	}
	clear, err := e.transparent(ctx, src)
	if clear {
		job.Warn(fileops.WarnTransparencyDropped, "%s does not support transparency; the background is white.", p.to.Title())
	}
	return err
}

// transparent reports whether a picture has areas that are not opaque. It checks a
// scaled-down version of the picture.
func (e *Engine) transparent(ctx context.Context, src source) (bool, error) {
	m, err := e.preview(ctx, src)
	if err != nil {
		return false, err
	}
	o, ok := m.(interface{ Opaque() bool })
	return ok && !o.Opaque(), nil
}

func warnCMYK(job *fileops.Job) {
	job.Warn(fileops.WarnColorConverted, "CMYK colours were converted to RGB.")
}

// warnHDR warns that high dynamic range is lost, because results have 8 bits and
// no gain map.
func warnHDR(job *fileops.Job, src source, h header) {
	switch {
	case hasGainMap(src):
		job.Warn(fileops.WarnHDRDropped, "The gain map for HDR displays was left out.")
	case h.hdr || isHDR(src):
		job.Warn(fileops.WarnHDRDropped, "The picture is HDR; the result has standard dynamic range.")
	}
}

// warnMotion warns that the video of a motion photo is lost.
func warnMotion(job *fileops.Job, src source) {
	if hasVideo(src) {
		job.Warn(fileops.WarnStreamsDropped, "The video of the motion photo was left out.")
	}
}

// hasVideo reports whether a photo contains a short video: a motion photo of Android, as
// its XMP data says, or of Samsung, which has a mark before the video.
func hasVideo(src source) bool {
	marks := []string{`MotionPhoto="1"`, `MicroVideo="1"`, ":MotionPhoto>1<", ":MicroVideo>1<"}
	if src.format != format.JPG && src.format != format.HEIC && src.format != format.AVIF {
		return false
	}
	head := src.data[:min(len(src.data), 1<<20)]
	for _, m := range marks {
		if bytes.Contains(head, []byte(m)) {
			return true
		}
	}
	return bytes.Contains(src.data, []byte("MotionPhoto_Data"))
}

// hasGainMap reports whether a photo has a second picture that makes it HDR:
// Ultra HDR and ISO 21496-1 in JPEG, and Apple's kind in HEIC.
func hasGainMap(src source) bool {
	marks := []string{}
	switch src.format {
	case format.JPG:
		marks = []string{"http://ns.adobe.com/hdr-gain-map/1.0/", "urn:iso:std:iso:ts:21496:-1"}
	case format.HEIC, format.AVIF:
		marks = []string{"urn:com:apple:photo:2020:aux:hdrgainmap", "tmap"}
	}
	head := src.data[:min(len(src.data), 1<<20)]
	for _, m := range marks {
		if bytes.Contains(head, []byte(m)) {
			return true
		}
	}
	return false
}

// isHDRProfile reports whether an ICC profile is one of libjxl for PQ or HLG.
func isHDRProfile(icc []byte) bool {
	for _, name := range []string{"_PeQ", "_HLG", "2100PQ", "2100HLG"} { // in its description, as UTF-16
		var text []byte
		for i := range len(name) {
			text = append(text, 0, name[i])
		}
		if bytes.Contains(icc, text) {
			return true
		}
	}
	return false
}

// isHDR reports whether the samples have the transfer function PQ or HLG (ITU-T
// H.273, 8.2).
func isHDR(src source) bool {
	const pq, hlg = 16, 18
	transfer := 0
	switch src.format {
	case format.HEIC, format.AVIF:
		const box = "colrnclx" // then the primaries (ISO/IEC 14496-12, 12.1.5)
		head := src.data[:min(len(src.data), 1<<20)]
		if i := bytes.Index(head, []byte(box)); i >= 0 && len(head) >= i+len(box)+4 {
			transfer = int(binary.BigEndian.Uint16(head[i+len(box)+2:]))
		}
	case format.PNG:
		for kind, chunk := range imagefile.PNGChunks(src.data) {
			if kind == "cICP" && len(chunk) == 12+4 {
				transfer = int(chunk[9])
			}
			if kind == "IDAT" {
				break
			}
		}
	}
	return transfer == pq || transfer == hlg
}

// isSequence reports whether a HEIF file holds moving pictures.
func isSequence(src source) bool {
	if src.format != format.AVIF && src.format != format.HEIC || len(src.data) < 12 {
		return false
	}
	switch string(src.data[8:12]) {
	case "avis", "msf1", "hevc", "hevx":
		return true
	}
	return false
}
