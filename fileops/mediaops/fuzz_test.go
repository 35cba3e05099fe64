package mediaops

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAnnouncement feeds odd texts to the parser of ffmpeg's description: names and tags
// of streams come from the file.
func FuzzAnnouncement(f *testing.F) {
	f.Add("[info] Input #0, mp3, from 'file:in.mp3':\n[info]   Duration: 00:00:05.04, start: 0.025057, bitrate: 64 kb/s\n" +
		"[info]   Stream #0:0: Audio: mp3, 44100 Hz, mono, fltp, 64 kb/s\n[info] Stream mapping:\n")
	f.Add("[info]   Duration: N/A\n[info]   Stream #0:1(eng): Video: h264 (High) (avc1 / 0x31637661), yuv420p, 99999999x99999999 (default)\n[info] Output #0")
	f.Fuzz(func(t *testing.T, text string) {
		h := &hearing{decided: make(chan struct{})}
		h.agree = func(m *media) (float64, bool) {
			m.audio()
			m.video()
			return m.duration, true
		}
		for line := range strings.Lines(text) {
			if _, err := h.line(strings.TrimSuffix(line, "\n")); err != nil {
				return
			}
		}
	})
}

// FuzzStreams feeds odd numbers to the calculations on ffprobe's output.
func FuzzStreams(f *testing.F) {
	f.Add(`{"codec_name":"h264","codec_type":"video","width":16,"height":9,"sample_aspect_ratio":"1:0","r_frame_rate":"0/0","avg_frame_rate":"1/1e400","duration":"NaN","time_base":"1/0"}`)
	f.Add(`{"codec_name":"aac","codec_type":"audio","sample_rate":"1e99","channels":-1,"bits_per_raw_sample":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s stream
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		if d := s.seconds(); !(d >= 0) {
			t.Errorf("%v seconds", d)
		}
		if fps, _ := s.frameRate(); !(fps >= 0) {
			t.Errorf("%v frames per second", fps)
		}
		s.size()
		s.turned()
		if d := s.clockwise(); d < 0 || d > 359 {
			t.Errorf("turned by %d degrees", d)
		}
		s.bits()
		s.transparent()
	})
}
