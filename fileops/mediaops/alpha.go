package mediaops

import (
	"strings"
)

// transparent reports whether the frames of s have an alpha channel.
func (s stream) transparent() bool {
	if s.Codec == "gif" || s.Tags["alpha_mode"] == "1" || s.Tags["ALPHA_MODE"] == "1" {
		return true
	}
	for _, p := range []string{"yuva", "rgba", "argb", "bgra", "abgr", "gbrap", "ya8", "ya16"} {
		if strings.HasPrefix(s.PixFmt, p) {
			return true
		}
	}
	return false
}

// alphaDecoders are the decoders that support transparency in codecs where ffmpeg's own
// decoder ignores it.
var alphaDecoders = map[string]string{"vp8": "libvpx", "vp9": "libvpx-vp9"}
