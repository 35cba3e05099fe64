package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/filewright/filewright/internal/compound"
)

// headSize is the length of the file's start that is examined. PDF readers
// accept the header anywhere in the first 1024 bytes. SVG and flat XML documents
// may start with long comments.
const headSize = 16 << 10

// Sniff returns the format of a file by its content alone. It returns "" for
// unknown content, and [TXT] for text of no particular kind. It reads a few
// kilobytes, and never more than a bounded amount.
//
// Formats that differ only by convention are distinguished by their brand or
// stream types, if the head contains them: an MP4 container may be [MP4], [MOV],
// [M4A], [M4V] or [ThGP]. [Check] knows which of them are compatible.
func Sniff(r io.ReaderAt, size int64) Format {
	f, _ := sniff(r, size)
	return f
}

// sniff also reports whether an office file is inside an encrypted container.
func sniff(r io.ReaderAt, size int64) (f Format, encrypted bool) {
	if size <= 0 {
		return "", false
	}
	head := make([]byte, min(size, headSize))
	n, err := r.ReadAt(head, 0)
	head = head[:n]
	if err != nil && !errors.Is(err, io.EOF) || n == 0 {
		return "", false
	}
	for _, sig := range signatures {
		if !sig.matches(head, size) {
			continue
		}
		switch sig.format {
		case ZIP:
			return sniffZIP(r, size, head)
		case compoundFile:
			return sniffCompound(r, size)
		}
		if sig.kind != nil {
			return sig.kind(head), false
		}
		return sig.format, false
	}
	if isISO(r, size) {
		return ISO, false
	}
	if f := sniffText(head, int64(n) == size); f != "" {
		return f, false
	}
	if isTGA(head, size) {
		return TGA, false
	}
	return sniffMPEGAudio(head), false
}

// A signature identifies a format by the start of a file.
type signature struct {
	format Format
	at     int // offset of magic
	magic  string
	form   string                             // four bytes after magic, "" for any
	check  func(head []byte, size int64) bool // nil if magic is sufficient
	kind   func(head []byte) Format           // distinguishes formats with the same magic; nil if there is only one
}

// compoundFile stands for all formats that are compound files.
const compoundFile Format = "compound file"

// signatures are tried in this order. Magics that are short or far from the
// start come after more specific ones.
var signatures = []signature{
	{format: PNG, magic: "\x89PNG\r\n\x1a\n"},
	{format: JPG, magic: "\xff\xd8\xff"},
	{format: GIF, magic: "GIF87a"},
	{format: GIF, magic: "GIF89a"},
	{format: WebP, magic: "RIFF", form: "WEBP"},
	{format: WAV, magic: "RIFF", form: "WAVE"},
	{format: WAV, magic: "RF64", form: "WAVE"},
	{format: AVI, magic: "RIFF", form: "AVI "},
	{format: RAW, magic: "II*\x00", check: isRawTIFF},
	{format: RAW, magic: "MM\x00*", check: isRawTIFF},
	{format: RAW, magic: "IIRO"}, // Olympus
	{format: RAW, magic: "IIRS"},
	{format: RAW, magic: "MMOR"},
	{format: RAW, magic: "IIU\x00"}, // Panasonic
	{format: RAW, magic: "FUJIFILMCCD-RAW "},
	{format: RAW, at: 6, magic: "HEAPCCDR"}, // Canon
	{format: RAW, magic: "\x00MRM"},         // Minolta
	{format: TIFF, magic: "II*\x00"},
	{format: TIFF, magic: "MM\x00*"},
	{format: TIFF, magic: "II+\x00"},
	{format: TIFF, magic: "MM\x00+"},
	{format: BMP, magic: "BM", form: "\x00\x00\x00\x00", check: atLeast(26)},
	{format: PSD, magic: "8BPS\x00\x01"},
	{format: PSD, magic: "8BPS\x00\x02"},
	{format: ICO, magic: "\x00\x00\x01\x00", check: func(head []byte, _ int64) bool {
		return len(head) > 22 && head[4] != 0 && head[5] == 0 && (head[9] == 0 || head[9] == 255) // some programs write 255
	}},
	{format: ICNS, magic: "icns", check: func(head []byte, size int64) bool {
		return len(head) > 16 && int64(binary.BigEndian.Uint32(head[4:])) <= size
	}},
	{format: EMF, magic: "\x01\x00\x00\x00", check: func(head []byte, _ int64) bool { return hasAt(head, 40, " EMF") }},
	{format: WMF, magic: "\xd7\xcd\xc6\x9a"},
	{format: WMF, check: isBareMetafile},
	{format: PPM, magic: "P", check: isPNM},
	{format: JXL, magic: "\x00\x00\x00\x0cJXL \r\n\x87\n"},
	{format: JXL, magic: "\xff\x0a"},
	{format: JP2, magic: "\x00\x00\x00\x0cjP  \r\n\x87\n"},
	{format: JP2, magic: "\xff\x4f\xff\x51\x00"},
	{at: 4, magic: "ftyp", kind: sniffISO},
	{format: MOV, at: 4, magic: "moov", check: isAtom}, // QuickTime without a file type box, before it was introduced
	{format: MOV, at: 4, magic: "mdat", check: isAtom},
	{format: MOV, at: 4, magic: "wide", check: isAtom},
	{format: MOV, at: 4, magic: "free", check: isAtom},
	{format: MOV, at: 4, magic: "skip", check: isAtom},
	{format: MOV, at: 4, magic: "pnot", check: isAtom},
	{format: ZIP, magic: "PK\x03\x04"},
	{format: ZIP, magic: "PK\x05\x06"},
	{format: ZIP, magic: "PK\x07\x08PK\x03\x04"},
	{format: compoundFile, magic: compound.Magic},
	{magic: "\x1a\x45\xdf\xa3", kind: ifContains("webm", 256, WebM, MKV)},
	{format: FLAC, magic: "fLaC"},
	{magic: "OggS", kind: ifContains("OpusHead", 128, Opus, OGG)},
	{format: AMR, magic: "#!AMR"},
	{format: AIFF, magic: "FORM", form: "AIFF"},
	{format: AIFF, magic: "FORM", form: "AIFC"},
	// A video stream makes an ASF file WMV (ASF specification, 10.4).
	{magic: "\x30\x26\xb2\x75\x8e\x66\xcf\x11", kind: ifContains("\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b", headSize, WMV, WMA)},
	{format: FLV, magic: "FLV\x01"},
	{format: MPEG, magic: "\x00\x00\x01\xba"},
	{format: MPEG, magic: "\x00\x00\x01\xb3"},
	{format: TS, check: isTS},
	{format: MP3, magic: "ID3", check: isID3},
	{format: SevenZip, magic: "7z\xbc\xaf\x27\x1c"},
	{format: RAR, magic: "Rar!\x1a\x07"},
	{format: GZ, magic: "\x1f\x8b\x08"},
	{format: BZ2, magic: "BZh", check: isBZ2},
	{format: XZ, magic: "\xfd7zXZ\x00"},
	{format: Zst, magic: "\x28\xb5\x2f\xfd"},
	{format: LZ4, magic: "\x04\x22\x4d\x18"},
	{format: Zst, at: 1, magic: "\x2a\x4d\x18", check: afterSkipped("\x28\xb5\x2f\xfd")},
	{format: LZ4, at: 1, magic: "\x2a\x4d\x18", check: afterSkipped("\x04\x22\x4d\x18")},
	{format: LZ4, magic: "\x02\x21\x4c\x18"}, // before version 1
	{format: LZ, magic: "LZIP", check: isLZ},
	{format: CAB, magic: "MSCF\x00\x00\x00\x00"},
	{format: RPM, magic: "\xed\xab\xee\xdb"},
	{format: DEB, magic: "!<arch>\ndebian-binary"},
	{format: AR, magic: "!<arch>\n"},
	{format: CPIO, magic: "07070", check: isCPIO},
	{format: CPIO, magic: "\xc7\x71", check: atLeast(26)}, // 070707 in octal, in either byte order
	{format: CPIO, magic: "\x71\xc7", check: atLeast(26)},
	{format: LZH, at: 2, magic: "-lh", check: isLZH},
	{format: LZH, at: 2, magic: "-lz", check: isLZH},
	{format: LZMA, magic: "\x5d\x00", check: isLZMA},
	{format: LZMA, magic: "\x5e\x00", check: isLZMA},
	{format: TAR, at: 257, magic: "ustar"},
	{format: TAR, check: isOldTar},
	{format: MOBI, at: 60, magic: "BOOKMOBI"}, // or AZW3, which only differs by a version
	{format: MOBI, at: 60, magic: "TEXtREAd"},
	{format: PS, magic: "%!PS"},
	{format: PS, magic: "\xc5\xd0\xd3\xc6"},
	{format: RTF, magic: "{\\rtf"},
	{format: PDF, check: func(head []byte, _ int64) bool {
		return bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-"))
	}},
}

// matches reports whether a file of size bytes that starts with head has the
// signature.
func (s *signature) matches(head []byte, size int64) bool {
	return hasAt(head, s.at, s.magic) && hasAt(head, s.at+len(s.magic)+4, s.form) && (s.check == nil || s.check(head, size))
}

// hasAt reports whether s is at an offset of head. "" matches everywhere.
func hasAt(head []byte, at int, s string) bool {
	return s == "" || len(head) >= at+len(s) && string(head[at:at+len(s)]) == s
}

func atLeast(n int) func([]byte, int64) bool {
	return func(head []byte, _ int64) bool { return len(head) >= n }
}

// ifContains returns a function that returns yes if the first n bytes contain s,
// and no otherwise.
func ifContains(s string, n int, yes, no Format) func([]byte) Format {
	return func(head []byte) Format {
		if bytes.Contains(head[:min(len(head), n)], []byte(s)) {
			return yes
		}
		return no
	}
}

// isRawTIFF reports whether a TIFF file is a raw photo: marked as Canon's CR2, or with the
// tag DNGVersion (50706) in its first directory. Raw photos of other makers look like TIFF
// files with a small preview.
func isRawTIFF(head []byte, _ int64) bool {
	if hasAt(head, 8, "CR\x02") {
		return true
	}
	var order binary.ByteOrder = binary.LittleEndian
	if len(head) < 8 {
		return false
	}
	if head[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(head[4:]))
	if at+2 > int64(len(head)) {
		return false
	}
	const size, dngVersion = 12, 50706
	entries := head[at+2:]
	for range order.Uint16(head[at:]) {
		if len(entries) < size {
			return false
		}
		if order.Uint16(entries) == dngVersion {
			return true
		}
		entries = entries[size:]
	}
	return false
}

// isPNM reports whether the magic number of Netpbm is followed by numbers or comments, or by
// the fields of a PAM header.
func isPNM(head []byte, _ int64) bool {
	if len(head) < 8 || head[1] < '1' || head[1] > '7' {
		return false
	}
	if head[1] == '7' {
		return bytes.HasPrefix(head[2:], []byte("\nWIDTH")) || bytes.HasPrefix(head[2:], []byte("\nHEIGHT")) || bytes.HasPrefix(head[2:], []byte("\nTUPLTYPE")) || bytes.HasPrefix(head[2:], []byte("\nDEPTH")) || bytes.HasPrefix(head[2:], []byte("\n#"))
	}
	rest, numbers := head[2:], 0
	for numbers < 2 {
		white := bytes.TrimLeft(rest, " \t\r\n")
		if len(white) == len(rest) {
			return false
		}
		if rest = white; bytes.HasPrefix(rest, []byte("#")) {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				return false
			}
			rest = rest[i:]
			continue
		}
		digits := bytes.TrimLeft(rest, "0123456789")
		if len(digits) == len(rest) {
			return false
		}
		rest = digits
		numbers++
	}
	return len(rest) > 0 && strings.IndexByte(" \t\r\n", rest[0]) >= 0
}

// isBareMetafile reports whether head starts with the header of a metafile without a place:
// its type, size and version, and no parameters ([MS-WMF] 2.3.2.2).
func isBareMetafile(head []byte, _ int64) bool {
	return len(head) > 18 && (head[0] == 1 || head[0] == 2) && head[1] == 0 && hasAt(head, 2, "\x09\x00\x00") &&
		(head[5] == 1 || head[5] == 3) && head[16] == 0 && head[17] == 0
}

// isTGA reports whether a file starts with a header of Targa, which has no magic: sizes of
// the palette and the picture, and types and depths that go together.
func isTGA(head []byte, size int64) bool {
	if len(head) < 19 {
		return false
	}
	le := binary.LittleEndian
	kind, bits, flags := head[2], head[16], head[17]
	w, h := int64(le.Uint16(head[12:])), int64(le.Uint16(head[14:]))
	colours, colourBits := int64(le.Uint16(head[5:])), int64(head[7])
	if head[1] > 1 || w == 0 || h == 0 || flags&0xc0 != 0 || flags&15 > 8 {
		return false
	}
	switch kind {
	case 1, 9:
		if head[1] != 1 || bits != 8 && bits != 16 || colours == 0 {
			return false
		}
	case 2, 10:
		if bits != 15 && bits != 16 && bits != 24 && bits != 32 {
			return false
		}
	case 3, 11:
		if bits != 8 && bits != 16 || head[1] != 0 {
			return false
		}
	default:
		return false
	}
	content := int64(0)
	if head[1] == 1 {
		if colourBits != 15 && colourBits != 16 && colourBits != 24 && colourBits != 32 {
			return false
		}
		content = colours * ((colourBits + 7) / 8)
	}
	if kind < 9 {
		content += w * h * ((int64(bits) + 7) / 8)
	}
	return 18+int64(head[0])+content <= size || kind >= 9 && size > 18+int64(head[0])
}

// isID3 reports whether a tag has a valid version and size, and is not just
// three letters.
func isID3(head []byte, _ int64) bool {
	return len(head) > 10 && head[3] < 0x10 && head[4] < 0x10 && head[6]|head[7]|head[8]|head[9] < 0x80
}

// isBZ2 reports whether a block or the end of the stream follows the header.
func isBZ2(head []byte, _ int64) bool {
	return len(head) > 9 && '1' <= head[3] && head[3] <= '9' &&
		(hasAt(head, 4, "\x31\x41\x59\x26\x53\x59") || hasAt(head, 4, "\x17\x72\x45\x38\x50\x90"))
}

// isOldTar reports whether head starts with the header of a tar archive from
// before POSIX (Unix version 7): a name, numbers in octal digits, and a checksum.
func isOldTar(head []byte, _ int64) bool {
	if len(head) < 512 || head[0] == 0 || head[156] != 0 && (head[156] < '0' || head[156] > '2') {
		return false
	}
	number := func(from, to int) (n int64, ok bool) {
		for _, c := range bytes.Trim(head[from:to], " \x00") {
			if c < '0' || c > '7' {
				return 0, false
			}
			n, ok = n<<3|int64(c-'0'), true
		}
		return n, ok
	}
	sum := int64(8 * ' ') // the checksum counts as spaces
	for i, c := range head[:512] {
		if i < 148 || i >= 156 {
			sum += int64(c)
		}
	}
	_, mode := number(100, 108)
	_, size := number(124, 136)
	want, ok := number(148, 156)
	return mode && size && ok && sum == want
}

// isCPIO reports whether an ASCII header of cpio consists of digits (cpio(5)).
func isCPIO(head []byte, _ int64) bool {
	n, digits := 0, "01234567"
	switch {
	case hasAt(head, 5, "7"):
		n = 76
	case hasAt(head, 5, "1"), hasAt(head, 5, "2"):
		n, digits = 110, "0123456789abcdefABCDEF"
	}
	return n > 0 && len(head) >= n && len(bytes.Trim(head[:n], digits)) == 0
}

// isLZH reports whether a method such as "-lh5-" ends the magic, and the level of the
// header is known.
func isLZH(head []byte, _ int64) bool {
	return len(head) > 21 && head[6] == '-' && head[20] <= 3
}

// afterSkipped returns a function that reports whether head has a magic number after one or
// more frames to skip (RFC 8878, 3.1.2), which files of Zstandard and LZ4 may start with.
func afterSkipped(magic string) func([]byte, int64) bool {
	return func(head []byte, _ int64) bool {
		for len(head) >= 8 && head[0]&0xF0 == 0x50 && hasAt(head, 1, "\x2a\x4d\x18") {
			n := int64(binary.LittleEndian.Uint32(head[4:])) + 8
			if n > int64(len(head)) {
				return false
			}
			head = head[n:]
		}
		return hasAt(head, 0, magic)
	}
}

// isLZ reports whether head has a version and a size of the dictionary of lzip after the
// magic.
func isLZ(head []byte, _ int64) bool {
	return len(head) > 5 && head[4] <= 1 && head[5]&31 >= 12 && head[5]&31 <= 29
}

// isLZMA reports whether head is plausible as a header of LZMA_Alone, which has no
// magic: properties, the size of the dictionary, the size of the content or -1, and
// a first byte of compressed data that is always 0.
func isLZMA(head []byte, _ int64) bool {
	if len(head) < 18 || head[13] != 0 {
		return false
	}
	dict, size := binary.LittleEndian.Uint32(head[1:]), binary.LittleEndian.Uint64(head[5:])
	low := dict & (dict - 1) // 2^n or 2^n + 2^(n-1)
	return dict >= 1<<12 && (low == 0 || low&(low-1) == 0) && (size == 1<<64-1 || size < 1<<40)
}

// isISO reports whether the first volume descriptor follows the system area of 32 KiB
// (ISO 9660, 6.2.1 and 8.1).
func isISO(r io.ReaderAt, size int64) bool {
	const at = 32 << 10
	var b [6]byte
	if size < at+2048 {
		return false
	}
	n, _ := r.ReadAt(b[:], at)
	return n == len(b) && string(b[1:]) == "CD001"
}

// sniffISO returns the kind of an ISO base media file by its brands (ISO/IEC
// 14496-12, file type box; mp4ra.org registers brands).
func sniffISO(head []byte) Format {
	end := min(int(binary.BigEndian.Uint32(head)), len(head), 512)
	if end < 12 {
		return MP4
	}
	major := string(head[8:12])
	has := func(brands ...string) bool {
		for i := 8; i+4 <= end; i += 4 {
			if i == 12 && major != "mif3" { // minor version, which is a brand beside mif3 (ISO/IEC 23008-12:2025)
				continue
			}
			if slices.Contains(brands, string(head[i:i+4])) {
				return true
			}
		}
		return false
	}
	switch {
	case has("avif", "avis"):
		return AVIF
	case major == "crx ":
		return RAW // Canon, CR3
	case has("heic", "heix", "hevc", "hevx", "heim", "heis", "avci", "avcs", "vvic", "vvis", "evbi", "evmi", "j2ki", "j2is", "jpeg", "jpgs") || slices.Contains([]string{"mif1", "mif2", "mif3", "msf1"}, major):
		return HEIC // pictures, also of codecs that are not HEVC
	case major == "jxl ":
		return JXL
	case major == "jp2 ", major == "jpx ":
		return JP2
	case major == "qt  ":
		return MOV
	case strings.HasPrefix(major, "M4A"), strings.HasPrefix(major, "M4B"), strings.HasPrefix(major, "M4P"):
		return M4A
	case strings.HasPrefix(major, "M4V"):
		return M4V
	case strings.HasPrefix(major, "3g"):
		return ThGP
	}
	return MP4
}

// isAtom reports whether the size at the start of a QuickTime atom is plausible.
// Texts may start with "The free".
func isAtom(head []byte, size int64) bool {
	n := int64(binary.BigEndian.Uint32(head))
	return n <= 1 || n >= 8 && n <= size || head[0] < ' '
}

// isTS reports whether head has the sync bytes of MPEG transport stream packets.
// Packets have 188 bytes, or 192 with a preceding time stamp.
func isTS(head []byte, _ int64) bool {
	for _, p := range [...]struct{ off, step int }{{0, 188}, {4, 192}} {
		ok := len(head) > p.off+3*p.step
		for i := 0; ok && i < 4; i++ {
			ok = head[p.off+i*p.step] == 0x47
		}
		if ok {
			return true
		}
	}
	return false
}

// sniffMPEGAudio checks for two consecutive frames of MPEG audio or of AAC in
// ADTS, because a single sync word is weak evidence. Zero bytes before the first
// frame are padding of encoders.
func sniffMPEGAudio(head []byte) Format {
	b := bytes.TrimLeft(head, "\x00")
	if len(b) < 8 || b[0] != 0xff || b[1] == 0xfe { // FF FE starts UTF-16; as audio it is layer 1 with a checksum, which is not used
		return ""
	}
	if b[1]&0xf6 == 0xf0 { // ADTS: layer is always 0 (ISO/IEC 13818-7, 6.2)
		n := int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5])>>5
		if n >= 7 && (n+1 >= len(b) || b[n] == 0xff && b[n+1]&0xf6 == 0xf0) {
			return AAC
		}
		return ""
	}
	n := mpegFrameSize(b)
	if n > 0 && (n+1 >= len(b) || b[n] == 0xff && b[n+1]&0xe0 == 0xe0) {
		return MP3
	}
	return ""
}

// mpegFrameSize returns the length in bytes of the MPEG audio frame at b, or 0
// (ISO/IEC 11172-3, 2.4.1.3 and 13818-3).
func mpegFrameSize(b []byte) int {
	if b[1]&0xe0 != 0xe0 {
		return 0
	}
	version, layer := b[1]>>3&3, b[1]>>1&3
	rate, freq, pad := b[2]>>4, b[2]>>2&3, int(b[2]>>1&1)
	if version == 1 || layer == 0 || rate == 0 || rate == 15 || freq == 3 {
		return 0
	}
	var kbit [16]int
	switch {
	case version == 3 && layer == 3:
		kbit = [16]int{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448}
	case version == 3 && layer == 2:
		kbit = [16]int{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384}
	case version == 3:
		kbit = [16]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}
	case layer == 3:
		kbit = [16]int{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256}
	default:
		kbit = [16]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}
	}
	hz := [3]int{44100, 48000, 32000}[freq]
	switch version {
	case 2:
		hz /= 2
	case 0:
		hz /= 4
	}
	if layer == 3 {
		return (12000*kbit[rate]/hz + pad) * 4
	}
	samples := 144
	if version != 3 && layer == 1 {
		samples = 72
	}
	return samples*1000*kbit[rate]/hz + pad
}

// sniffText distinguishes text from binary data, and identifies text formats by
// a typical start. whole means that head is the whole file.
func sniffText(head []byte, whole bool) Format {
	text, ok := decodeText(head, whole)
	if !ok {
		// The body of a message may be binary (RFC 2045, 2.9).
		fields, _, _ := strings.Cut(strings.ReplaceAll(string(head), "\r\n", "\n"), "\n\n")
		if fields, ok = decodeText([]byte(fields), true); ok && isMessage(fields) {
			return EML
		}
		return ""
	}
	low := strings.ToLower(strings.TrimLeft(text, "\ufeff \t\r\n"))
	// A declaration, a document type and comments may precede the root.
	root := low
	for {
		root = strings.TrimLeft(root, " \t\r\n")
		var end string
		switch {
		case strings.HasPrefix(root, "<?"):
			end = "?>"
		case strings.HasPrefix(root, "<!--"):
			end = "-->"
		case strings.HasPrefix(root, "<!doctype html"):
			return HTML
		case strings.HasPrefix(root, "<!doctype svg"):
			return SVG
		case strings.HasPrefix(root, "<!doctype"):
			end = ">"
			if i, j := strings.IndexByte(root, '['), strings.IndexByte(root, '>'); i >= 0 && i < j {
				end = "]>"
			}
		}
		if end == "" {
			break
		}
		_, rest, found := strings.Cut(root, end)
		if !found {
			break
		}
		root = rest
	}
	switch {
	case strings.HasPrefix(root, "<svg") || isPrefixedSVG(root):
		return SVG
	case strings.HasPrefix(root, "<html"), strings.HasPrefix(root, "<head"), strings.HasPrefix(root, "<body"):
		return HTML
	case strings.HasPrefix(root, "<office:document"):
		switch {
		case strings.Contains(root, "opendocument.text"):
			return FODT
		case strings.Contains(root, "opendocument.spreadsheet"):
			return FODS
		case strings.Contains(root, "opendocument.presentation"):
			return FODP
		}
		return XML
	case strings.HasPrefix(root, "<fictionbook"):
		return FB2
	case strings.HasPrefix(low, "<?xml"):
		return XML
	}
	if isMessage(text) {
		return EML
	}
	return sniffSubtitles(text)
}

// isPrefixedSVG reports whether a text in lower case starts with the root of a drawing whose
// namespace has a prefix, such as that of Python's ElementTree: <ns0:svg xmlns:ns0="…">.
func isPrefixedSVG(root string) bool {
	if strings.HasPrefix(root, "<svg:svg") {
		return true
	}
	end := strings.IndexAny(root, " \t\r\n/>")
	if end < 0 || root[0] != '<' {
		return false
	}
	_, local, ok := strings.Cut(root[:end], ":")
	tag, _, _ := strings.Cut(root, ">")
	return ok && local == "svg" && strings.Contains(tag, "http://www.w3.org/2000/svg")
}

// sniffSubtitles returns the format of a text if it is subtitles, and TXT otherwise.
func sniffSubtitles(text string) Format {
	text = strings.TrimPrefix(text, "\ufeff")
	if rest, ok := strings.CutPrefix(text, "WEBVTT"); ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) {
		return VTT
	}
	text = strings.TrimLeft(text, " \t\r\n")
	if len(text) > 13 && strings.EqualFold(text[:13], "[script info]") {
		return ASS
	}
	// A number, then a line with two times. Some files lack the number of the first.
	first, rest, _ := strings.Cut(text, "\n")
	if first = strings.TrimSpace(first); strings.Trim(first, "0123456789") == "" {
		first, _, _ = strings.Cut(strings.TrimLeft(rest, " \t\r\n"), "\n")
	}
	from, to, ok := strings.Cut(first, "-->")
	if to, _, _ = strings.Cut(strings.TrimSpace(to), " "); ok && isClock(strings.TrimSpace(from)) && isClock(to) {
		return SRT
	}
	return TXT
}

// isClock reports whether s is a time of SubRip: 00:01:02,345.
func isClock(s string) bool {
	return strings.Trim(s, "0123456789:.,") == "" && strings.Count(s, ":") == 2 && s[0] != ':'
}

// isMessage reports whether a text starts with the header of an email message: only
// fields, and among them two of those that every message has (RFC 5322, 3.6).
func isMessage(text string) bool {
	var found []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' { // folded
			continue
		}
		name, _, ok := strings.Cut(line, ":")
		if strings.HasPrefix(line, "From ") && len(found) == 0 { // stored in a mailbox
			continue
		}
		if !ok || name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return false
		}
		switch strings.ToLower(name) {
		case "from", "to", "date", "message-id", "mime-version", "received", "return-path", "delivered-to", "x-sender", "reply-to", "cc":
			if name = strings.ToLower(name); !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return len(found) > 1
}

// utf16Order returns the byte order of UTF-16 without a byte order mark, or nil.
// Most of such text is ASCII: letters, digits, separators and line ends.
func utf16Order(head []byte) binary.ByteOrder {
	var zeros [2]int
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
	}
	if len(head) < 8 || len(head)%2 != 0 || min(zeros[0], zeros[1]) > 0 || max(zeros[0], zeros[1]) < len(head)/4 {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if zeros[0] > 0 {
		order = binary.BigEndian
	}
	for i := 0; i+1 < len(head); i += 2 {
		if c := order.Uint16(head[i:]); c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return nil
		}
	}
	return order
}

// decodeText returns head as a string if it is text: UTF-16, or bytes without the control characters that text never has. It also
// accepts text in an old 8-bit encoding. Its characters are decoded wrongly, but
// callers search only for ASCII.
func decodeText(head []byte, whole bool) (string, bool) {
	if len(head) >= 2 && (head[0] == 0xff && head[1] == 0xfe || head[0] == 0xfe && head[1] == 0xff) {
		var order binary.ByteOrder = binary.LittleEndian
		if head[0] == 0xfe {
			order = binary.BigEndian
		}
		u := make([]uint16, 0, len(head)/2)
		for i := 2; i+1 < len(head); i += 2 {
			u = append(u, order.Uint16(head[i:]))
		}
		s := string(utf16.Decode(u))
		return s, !strings.ContainsRune(s, 0) && len(head)%2 == 0
	}
	if order := utf16Order(head); order != nil {
		u := make([]uint16, 0, len(head)/2)
		for i := 0; i+1 < len(head); i += 2 {
			u = append(u, order.Uint16(head[i:]))
		}
		return string(utf16.Decode(u)), true
	}
	control, invalid := 0, 0
	for b := head; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			if !whole && len(b) < utf8.UTFMax {
				break // a rune truncated at the end of head
			}
			invalid++
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != '\v' && r != 0x1b && r != 0x08, r == 0x7f:
			control++
		}
		b = b[n:]
	}
	// Latin-1 or Shift-JIS text has many bytes that are not UTF-8, but no control
	// characters. Random bytes have both.
	if control > 0 && (control*100 > len(head) || invalid > 0 || bytes.IndexByte(head, 0) >= 0) {
		return "", false
	}
	return string(head), true
}

// A MismatchError reports that the content of a file does not match its name.
type MismatchError struct {
	Want Format // format of the name
	Got  Format // format of the content; "" if unknown
}

// Error implements error.
func (e *MismatchError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("the content is not %s", e.Want.Title())
	}
	return fmt.Sprintf("the name says %s, but the content is %s", e.Want.Title(), e.Got.Title())
}

// ErrEncrypted reports that a file is in an encrypted container, so its content
// cannot be checked.
var ErrEncrypted = errors.New("the file is encrypted")

// Check compares the content of a file with the format want of its name. It
// returns nil if they can match, and a *[MismatchError] otherwise. For a
// password-protected Office file it returns [ErrEncrypted]. It accepts all
// content for unknown formats. An empty file is a mismatch unless want is a text
// format.
func Check(want Format, r io.ReaderAt, size int64) error {
	if !want.Known() {
		return nil
	}
	if size <= 0 {
		if isFreeText(want) {
			return nil
		}
		return &MismatchError{Want: want}
	}
	got, encrypted := sniff(r, size)
	if encrypted {
		switch want.Plain() {
		case DOCX, XLSX, PPTX, DOC, XLS, PPT, XLSB:
			if got == "" {
				return ErrEncrypted
			}
		case Pages, Numbers, Key:
			if got != "" {
				return ErrEncrypted
			}
		}
	}
	if got == want || compatible(want, got) || isFreeText(want) && mentions(got, r, size) {
		return nil
	}
	if got == "" && want == ZIP {
		// A program that extracts itself: the archive follows it (APPNOTE 4.1.9).
		if entries, ok := zipEntries(r, size); ok && len(entries) > 0 {
			return nil
		}
	}
	if got == ZIP && inZIP(want) {
		if _, ok := zipEntries(r, size); !ok {
			got = "" // the end is missing, so the original format is unknown
		}
	}
	return &MismatchError{Want: want, Got: got}
}

// mentions reports whether a file that was sniffed as got is really a text that
// contains the magic of that format, such as a text about PDF.
func mentions(got Format, r io.ReaderAt, size int64) bool {
	head := make([]byte, min(size, headSize))
	n, _ := r.ReadAt(head, 0)
	head = head[:n]
	if got == "" || got == RTF || got == PS || got == AR || got == DEB || bytes.HasPrefix(head, []byte("%PDF-")) {
		return false
	}
	_, ok := decodeText(head, int64(n) == size)
	return ok
}

// inZIP reports whether files of format f are ZIP archives.
func inZIP(f Format) bool {
	switch f.Plain() {
	case DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB, XLSB, ODG, VSDX, Pages, Numbers, Key:
		return true
	}
	return false
}

// isFreeText reports whether any text can be a file of format f.
func isFreeText(f Format) bool {
	switch f {
	case SVG, FB2, EML, SRT, VTT, ASS:
		return false
	}
	return isText(f)
}

func isText(f Format) bool {
	switch f {
	case TXT, MD, HTML, CSV, TSV, XML, JSON, JSONL, SVG, RST, Org, TeX, FB2, EML, SRT, VTT, ASS:
		return true
	}
	return false
}

func compatible(want, got Format) bool {
	in := func(set ...Format) bool {
		var w, g bool
		for _, f := range set {
			w, g = w || f == want, g || f == got
		}
		return w && g
	}
	switch want {
	case TXT, MD, HTML, CSV, TSV, JSON, JSONL, XML, RST, Org, TeX:
		// Text can be any of these formats. Markup formats that users do not read as
		// text (RTF, PostScript) cannot.
		return isText(got) || got == FODT || got == FODS || got == FODP
	case MP3, AAC, MPEG, TS:
		// Streams without a header may start anywhere, or with a tag of another kind.
		// The engine decides about unknown content.
		return got == "" || in(MP3, AAC) || in(MPEG, TS)
	case ZIP:
		// Documents that are ZIP archives may be treated as such.
		return got == ZIP || inZIP(got)
	case TarGZ:
		return got == GZ
	case GZ:
		return got == TarGZ
	case TarBZ2:
		return got == BZ2
	case TarXZ:
		return got == XZ
	case TarZst:
		return got == Zst
	case TarLZ4:
		return got == LZ4
	case TarLZMA: // or tlz, which stands for both
		return got == LZMA || got == LZ
	case TarLZ:
		return got == LZ
	case AR:
		return got == DEB
	case RAW, TIFF: // most raw photos are TIFF files
		return in(RAW, TIFF)
	}
	if want.Plain() == got.Plain() || in(XLSX, XLSB) { // templates and documents with macros differ only by a mark
		return true
	}
	return in(MOBI, AZW3) || in(MP4, MOV, M4V, ThGP, M4A) || in(MKV, WebM) || in(WMV, WMA) || in(OGG, Opus)
}
