// Package format defines the file formats of the module: extensions, MIME types
// and families. [Sniff] identifies a format by content, and [Check] compares the
// content with a file's name.
//
// The package consists of tables and sniffers. It keeps no state and imports only
// the standard library and internal/compound.
package format

import (
	"iter"
	"slices"
	"strings"
)

// A Format is a canonical file extension: lower case, without the dot, and with
// aliases resolved ("JPEG" and "jpe" are both [JPG]). It is a plain string, so
// it can be a map key, appear in JSON, and name a format that this package does
// not know.
type Format string

// Any matches every format, including unknown ones. No file has this format.
const Any Format = "*"

// Documents.
const (
	PDF  Format = "pdf"
	DOC  Format = "doc"
	DOCX Format = "docx"
	ODT  Format = "odt"
	FODT Format = "fodt"
	RTF  Format = "rtf"
	TXT  Format = "txt"
	MD   Format = "md"
	HTML Format = "html"
	EPUB Format = "epub"
	XML  Format = "xml"
	JSON Format = "json"

	JSONL Format = "jsonl" // a value in each line
	PS    Format = "ps"
	DOCM  Format = "docm"
	DOTX  Format = "dotx"
	DOTM  Format = "dotm"
	DOT   Format = "dot"
	OTT   Format = "ott"
	RST   Format = "rst"
	Org   Format = "org"
	TeX   Format = "tex"
	FB2   Format = "fb2"
	EML   Format = "eml"
	MSG   Format = "msg"
	MOBI  Format = "mobi"
	AZW3  Format = "azw3"
)

// Subtitles.
const (
	SRT Format = "srt"
	VTT Format = "vtt"
	ASS Format = "ass"
)

// Drawings.
const (
	ODG  Format = "odg"
	VSDX Format = "vsdx"
	VSD  Format = "vsd"
	PUB  Format = "pub"
	EMF  Format = "emf"
	WMF  Format = "wmf"
)

// Documents of Apple's programs.
const (
	Pages   Format = "pages"
	Numbers Format = "numbers"
	Key     Format = "key"
)

// Slides and sheets.
const (
	PPT  Format = "ppt"
	PPTX Format = "pptx"
	ODP  Format = "odp"
	FODP Format = "fodp"
	XLS  Format = "xls"
	XLSX Format = "xlsx"
	ODS  Format = "ods"
	FODS Format = "fods"
	CSV  Format = "csv"
	TSV  Format = "tsv"
	PPTM Format = "pptm"
	PPSX Format = "ppsx"
	PPSM Format = "ppsm"
	POTX Format = "potx"
	POTM Format = "potm"
	PPS  Format = "pps"
	POT  Format = "pot"
	OTP  Format = "otp"
	XLSM Format = "xlsm"
	XLTX Format = "xltx"
	XLTM Format = "xltm"
	XLSB Format = "xlsb"
	XLT  Format = "xlt"
	OTS  Format = "ots"
)

// Images.
const (
	JPG  Format = "jpg"
	PNG  Format = "png"
	WebP Format = "webp"
	GIF  Format = "gif"
	TIFF Format = "tiff"
	BMP  Format = "bmp"
	AVIF Format = "avif"
	HEIC Format = "heic"
	JXL  Format = "jxl"
	JP2  Format = "jp2"
	SVG  Format = "svg"
	ICO  Format = "ico"
	PSD  Format = "psd"
	RAW  Format = "raw" // of any camera
	PPM  Format = "ppm" // any format of Netpbm
	TGA  Format = "tga"
	ICNS Format = "icns"
)

// Audio.
const (
	MP3  Format = "mp3"
	WAV  Format = "wav"
	FLAC Format = "flac"
	OGG  Format = "ogg"
	Opus Format = "opus"
	M4A  Format = "m4a"
	AAC  Format = "aac"
	WMA  Format = "wma"
	AIFF Format = "aiff"
	AMR  Format = "amr"
)

// Video.
const (
	MP4  Format = "mp4"
	MOV  Format = "mov"
	MKV  Format = "mkv"
	WebM Format = "webm"
	AVI  Format = "avi"
	WMV  Format = "wmv"
	FLV  Format = "flv"
	MPEG Format = "mpeg"
	TS   Format = "ts"
	M4V  Format = "m4v"
	ThGP Format = "3gp"
)

// Archives.
const (
	ZIP      Format = "zip"
	TAR      Format = "tar"
	TarGZ    Format = "tar.gz"
	TarBZ2   Format = "tar.bz2"
	TarXZ    Format = "tar.xz"
	TarZst   Format = "tar.zst"
	GZ       Format = "gz"
	BZ2      Format = "bz2"
	XZ       Format = "xz"
	Zst      Format = "zst"
	LZ4      Format = "lz4"
	LZMA     Format = "lzma"
	LZ       Format = "lz"
	TarLZ4   Format = "tar.lz4"
	TarLZMA  Format = "tar.lzma"
	TarLZ    Format = "tar.lz"
	SevenZip Format = "7z"
	RAR      Format = "rar"
	ISO      Format = "iso"
	CAB      Format = "cab"
	CPIO     Format = "cpio"
	AR       Format = "ar"
	DEB      Format = "deb"
	RPM      Format = "rpm"
	LZH      Format = "lzh"
)

// A Family is a group of formats that users consider the same kind of file.
type Family string

// The families. A format this package does not know has the family Other.
const (
	Document Family = "document"
	Slides   Family = "slides"
	Sheet    Family = "sheet"
	Image    Family = "image"
	Audio    Family = "audio"
	Video    Family = "video"
	Archive  Family = "archive"
	Other    Family = "other"
)

type info struct {
	family  Family
	mime    string
	name    string
	aliases []Format
}

// known is the table behind all methods of Format. It is read-only.
var known = map[Format]info{
	PDF:  {Document, "application/pdf", "PDF", nil},
	DOC:  {Document, "application/msword", "Word 97–2003 document", nil},
	DOCX: {Document, "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "Word document", nil},
	ODT:  {Document, "application/vnd.oasis.opendocument.text", "OpenDocument text", nil},
	FODT: {Document, "application/vnd.oasis.opendocument.text-flat-xml", "flat OpenDocument text", nil},
	RTF:  {Document, "application/rtf", "Rich Text Format", nil},
	TXT:  {Document, "text/plain", "plain text", []Format{"text", "log"}},
	MD:   {Document, "text/markdown", "Markdown", []Format{"markdown", "mkd"}},
	HTML: {Document, "text/html", "HTML", []Format{"htm", "xhtml"}},
	EPUB: {Document, "application/epub+zip", "EPUB book", nil},
	MOBI: {Document, "application/x-mobipocket-ebook", "Mobipocket book", []Format{"prc", "azw"}},
	AZW3: {Document, "application/vnd.amazon.mobi8-ebook", "Kindle book", nil},
	XML:  {Document, "application/xml", "XML", nil},
	JSON: {Document, "application/json", "JSON", nil},

	JSONL: {Document, "application/x-ndjson", "JSON Lines", []Format{"ndjson"}},
	PS:    {Document, "application/postscript", "PostScript", []Format{"eps"}},
	DOCM:  {Document, "application/vnd.ms-word.document.macroenabled.12", "Word document with macros", nil},
	DOTX:  {Document, "application/vnd.openxmlformats-officedocument.wordprocessingml.template", "Word template", nil},
	DOTM:  {Document, "application/vnd.ms-word.template.macroenabled.12", "Word template with macros", nil},
	DOT:   {Document, "application/msword", "Word 97–2003 template", nil},
	OTT:   {Document, "application/vnd.oasis.opendocument.text-template", "OpenDocument text template", nil},
	RST:   {Document, "text/prs.fallenstein.rst", "reStructuredText", []Format{"rest"}},
	Org:   {Document, "text/org", "Org document", nil},
	TeX:   {Document, "application/x-tex", "LaTeX document", []Format{"latex", "ltx"}},
	FB2:   {Document, "application/x-fictionbook+xml", "FictionBook", nil},
	EML:   {Document, "message/rfc822", "email message", nil},
	MSG:   {Document, "application/vnd.ms-outlook", "Outlook message", nil},
	SRT:   {Document, "application/x-subrip", "SubRip subtitles", nil},
	VTT:   {Document, "text/vtt", "WebVTT subtitles", []Format{"webvtt"}},
	ASS:   {Document, "text/x-ssa", "Advanced SubStation Alpha subtitles", []Format{"ssa"}},
	ODG:   {Document, "application/vnd.oasis.opendocument.graphics", "OpenDocument drawing", nil},
	VSDX:  {Document, "application/vnd.ms-visio.drawing.main+xml", "Visio drawing", nil},
	VSD:   {Document, "application/vnd.visio", "Visio 2000–2010 drawing", nil},
	PUB:   {Document, "application/vnd.ms-publisher", "Publisher publication", nil},
	EMF:   {Document, "image/emf", "enhanced metafile of Windows", nil},
	WMF:   {Document, "image/wmf", "metafile of Windows", nil},

	Pages:   {Document, "application/vnd.apple.pages", "Pages document", nil},
	Numbers: {Sheet, "application/vnd.apple.numbers", "Numbers spreadsheet", nil},
	Key:     {Slides, "application/vnd.apple.keynote", "Keynote presentation", nil},

	PPT:  {Slides, "application/vnd.ms-powerpoint", "PowerPoint 97–2003 presentation", nil},
	PPTX: {Slides, "application/vnd.openxmlformats-officedocument.presentationml.presentation", "PowerPoint presentation", nil},
	ODP:  {Slides, "application/vnd.oasis.opendocument.presentation", "OpenDocument presentation", nil},
	FODP: {Slides, "application/vnd.oasis.opendocument.presentation-flat-xml", "flat OpenDocument presentation", nil},
	XLS:  {Sheet, "application/vnd.ms-excel", "Excel 97–2003 workbook", nil},
	XLSX: {Sheet, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "Excel workbook", nil},
	ODS:  {Sheet, "application/vnd.oasis.opendocument.spreadsheet", "OpenDocument spreadsheet", nil},
	FODS: {Sheet, "application/vnd.oasis.opendocument.spreadsheet-flat-xml", "flat OpenDocument spreadsheet", nil},
	CSV:  {Sheet, "text/csv", "comma-separated values", nil},
	TSV:  {Sheet, "text/tab-separated-values", "tab-separated values", []Format{"tab"}},
	PPTM: {Slides, "application/vnd.ms-powerpoint.presentation.macroenabled.12", "PowerPoint presentation with macros", nil},
	PPSX: {Slides, "application/vnd.openxmlformats-officedocument.presentationml.slideshow", "PowerPoint show", nil},
	PPSM: {Slides, "application/vnd.ms-powerpoint.slideshow.macroenabled.12", "PowerPoint show with macros", nil},
	POTX: {Slides, "application/vnd.openxmlformats-officedocument.presentationml.template", "PowerPoint template", nil},
	POTM: {Slides, "application/vnd.ms-powerpoint.template.macroenabled.12", "PowerPoint template with macros", nil},
	PPS:  {Slides, "application/vnd.ms-powerpoint", "PowerPoint 97–2003 show", nil},
	POT:  {Slides, "application/vnd.ms-powerpoint", "PowerPoint 97–2003 template", nil},
	OTP:  {Slides, "application/vnd.oasis.opendocument.presentation-template", "OpenDocument presentation template", nil},
	XLSM: {Sheet, "application/vnd.ms-excel.sheet.macroenabled.12", "Excel workbook with macros", nil},
	XLTX: {Sheet, "application/vnd.openxmlformats-officedocument.spreadsheetml.template", "Excel template", nil},
	XLTM: {Sheet, "application/vnd.ms-excel.template.macroenabled.12", "Excel template with macros", nil},
	XLSB: {Sheet, "application/vnd.ms-excel.sheet.binary.macroenabled.12", "Excel binary workbook", nil},
	XLT:  {Sheet, "application/vnd.ms-excel", "Excel 97–2003 template", nil},
	OTS:  {Sheet, "application/vnd.oasis.opendocument.spreadsheet-template", "OpenDocument spreadsheet template", nil},

	JPG:  {Image, "image/jpeg", "JPEG", []Format{"jpeg", "jpe", "jfif", "pjpeg"}},
	PNG:  {Image, "image/png", "PNG", []Format{"apng"}},
	WebP: {Image, "image/webp", "WebP", nil},
	GIF:  {Image, "image/gif", "GIF", nil},
	TIFF: {Image, "image/tiff", "TIFF", []Format{"tif"}},
	BMP:  {Image, "image/bmp", "BMP", []Format{"dib"}},
	AVIF: {Image, "image/avif", "AVIF", nil},
	HEIC: {Image, "image/heic", "HEIC", []Format{"heif", "hif"}},
	JXL:  {Image, "image/jxl", "JPEG XL", nil},
	JP2:  {Image, "image/jp2", "JPEG 2000", []Format{"j2k", "jpx", "jpf"}},
	SVG:  {Image, "image/svg+xml", "SVG", nil},
	ICO:  {Image, "image/vnd.microsoft.icon", "icon", nil},
	PSD:  {Image, "image/vnd.adobe.photoshop", "Photoshop image", []Format{"psb"}},
	PPM:  {Image, "image/x-portable-anymap", "Netpbm image", []Format{"pnm", "pgm", "pbm", "pam"}},
	TGA:  {Image, "image/x-tga", "Targa image", []Format{"targa", "vda", "icb", "vst"}},
	ICNS: {Image, "image/icns", "icon of macOS", nil},
	RAW: {Image, "image/x-dcraw", "raw photo of a camera", []Format{
		"3fr", "arw", "cr2", "cr3", "crw", "dcr", "dng", "erf", "fff", "iiq", "kdc", "mef", "mos", "mrw", "nef", "nrw", "orf", "pef", "raf", "rw2", "rwl", "sr2", "srf", "srw",
	}},

	MP3:  {Audio, "audio/mpeg", "MP3", nil},
	WAV:  {Audio, "audio/wav", "WAV", []Format{"wave"}},
	FLAC: {Audio, "audio/flac", "FLAC", nil},
	OGG:  {Audio, "audio/ogg", "Ogg audio", []Format{"oga"}},
	Opus: {Audio, "audio/opus", "Opus", nil},
	M4A:  {Audio, "audio/mp4", "MPEG-4 audio", []Format{"m4b"}},
	AAC:  {Audio, "audio/aac", "AAC", []Format{"adts"}},
	WMA:  {Audio, "audio/x-ms-wma", "Windows Media audio", nil},
	AIFF: {Audio, "audio/aiff", "AIFF", []Format{"aif", "aifc"}},
	AMR:  {Audio, "audio/amr", "AMR", nil},

	MP4:  {Video, "video/mp4", "MPEG-4 video", nil},
	MOV:  {Video, "video/quicktime", "QuickTime video", []Format{"qt"}},
	MKV:  {Video, "video/x-matroska", "Matroska video", nil},
	WebM: {Video, "video/webm", "WebM video", nil},
	AVI:  {Video, "video/x-msvideo", "AVI video", nil},
	WMV:  {Video, "video/x-ms-wmv", "Windows Media video", []Format{"asf"}},
	FLV:  {Video, "video/x-flv", "Flash video", nil},
	MPEG: {Video, "video/mpeg", "MPEG video", []Format{"mpg", "vob"}},
	TS:   {Video, "video/mp2t", "MPEG transport stream", []Format{"mts", "m2ts"}},
	M4V:  {Video, "video/x-m4v", "MPEG-4 video (m4v)", nil},
	ThGP: {Video, "video/3gpp", "3GPP video", []Format{"3g2", "3gpp"}},

	ZIP:      {Archive, "application/zip", "ZIP archive", nil},
	TAR:      {Archive, "application/x-tar", "tar archive", nil},
	TarGZ:    {Archive, "application/gzip", "compressed tar archive", []Format{"tgz"}},
	TarBZ2:   {Archive, "application/x-bzip2", "compressed tar archive (bzip2)", []Format{"tbz2", "tbz"}},
	TarXZ:    {Archive, "application/x-xz", "compressed tar archive (xz)", []Format{"txz"}},
	TarZst:   {Archive, "application/zstd", "compressed tar archive (Zstandard)", []Format{"tzst"}},
	GZ:       {Archive, "application/gzip", "gzip file", []Format{"gzip"}},
	BZ2:      {Archive, "application/x-bzip2", "bzip2 file", nil},
	XZ:       {Archive, "application/x-xz", "xz file", nil},
	Zst:      {Archive, "application/zstd", "Zstandard file", nil},
	LZ4:      {Archive, "application/x-lz4", "LZ4 file", nil},
	LZMA:     {Archive, "application/x-lzma", "LZMA file", nil},
	TarLZ4:   {Archive, "application/x-lz4", "compressed tar archive (LZ4)", nil},
	TarLZMA:  {Archive, "application/x-lzma", "compressed tar archive (LZMA)", []Format{"tlz"}},
	LZ:       {Archive, "application/x-lzip", "lzip file", nil},
	TarLZ:    {Archive, "application/x-lzip", "compressed tar archive (lzip)", nil},
	SevenZip: {Archive, "application/x-7z-compressed", "7-Zip archive", nil},
	RAR:      {Archive, "application/vnd.rar", "RAR archive", nil},
	ISO:      {Archive, "application/x-iso9660-image", "disc image", nil},
	CAB:      {Archive, "application/vnd.ms-cab-compressed", "Cabinet archive", nil},
	CPIO:     {Archive, "application/x-cpio", "cpio archive", nil},
	AR:       {Archive, "application/x-archive", "ar archive", nil},
	DEB:      {Archive, "application/vnd.debian.binary-package", "Debian package", nil},
	RPM:      {Archive, "application/x-rpm", "RPM package", nil},
	LZH:      {Archive, "application/x-lzh-compressed", "LHA archive", []Format{"lha"}},
}

// plainOf has the plain formats of templates, and of formats with macros.
var plainOf = map[Format]Format{
	DOCM: DOCX, DOTX: DOCX, DOTM: DOCX,
	DOT:  DOC,
	OTT:  ODT,
	PPTM: PPTX, PPSX: PPTX, PPSM: PPTX, POTX: PPTX, POTM: PPTX,
	PPS: PPT, POT: PPT,
	OTP:  ODP,
	XLSM: XLSX, XLTX: XLSX, XLTM: XLSX,
	XLT: XLS,
	OTS: ODS,
}

// byAlias is derived from known to avoid duplication.
var byAlias = func() map[Format]Format {
	m := make(map[Format]Format)
	for f, i := range known {
		for _, a := range i.aliases {
			m[a] = f
		}
	}
	return m
}()

// twoParts lists the extensions with two parts.
var twoParts = [...]Format{TarGZ, TarBZ2, TarXZ, TarZst, TarLZ4, TarLZMA, TarLZ}

// Parse returns the format for an extension or a file name. It never fails. It
// returns an unknown extension in lower case, and "" if there is no extension.
//
//	Parse("report.PDF")   // PDF
//	Parse(".jpeg")        // JPG
//	Parse("a.tar.gz")     // TarGZ
//	Parse("Makefile")     // "makefile", an unknown format
func Parse(name string) Format {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.ToLower(strings.TrimSpace(name))
	for _, f := range twoParts {
		if strings.HasSuffix(name, "."+string(f)) || name == string(f) {
			return f
		}
	}
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	f := Format(name)
	if g, ok := byAlias[f]; ok {
		return g
	}
	return f
}

// Known yields the known formats in alphabetical order.
func Known() iter.Seq[Format] {
	return func(yield func(Format) bool) {
		all := make([]Format, 0, len(known))
		for f := range known {
			all = append(all, f)
		}
		slices.Sort(all)
		for _, f := range all {
			if !yield(f) {
				return
			}
		}
	}
}

// Known reports whether this package knows f.
func (f Format) Known() bool { _, ok := known[f]; return ok }

// Aliases returns the other extensions of f, such as jpeg for jpg.
func (f Format) Aliases() []Format { return slices.Clone(known[f].aliases) }

// Family returns the family of f, or Other.
func (f Format) Family() Family {
	if i, ok := known[f]; ok {
		return i.family
	}
	return Other
}

// MIME returns the media type of f, or "application/octet-stream" if f is
// unknown. Types come from the IANA registry if it has one.
func (f Format) MIME() string {
	if i, ok := known[f]; ok {
		return i.mime
	}
	return "application/octet-stream"
}

// Title returns a display name of f: "Word document". For an unknown format it
// is the extension in capitals.
func (f Format) Title() string {
	if i, ok := known[f]; ok {
		return i.name
	}
	return strings.ToUpper(string(f))
}

// Plain returns the format whose files have the same structure as those of f, but are
// no templates and have no macros: [DOCX] for [DOTM]. It returns f if there is no other.
func (f Format) Plain() Format {
	if p, ok := plainOf[f]; ok {
		return p
	}
	return f
}

// WithVariants returns the formats of all with those whose [Format.Plain] is one of
// them, each after its plain format and in alphabetical order.
func WithVariants(all ...Format) []Format {
	var out []Format
	for _, f := range all {
		out = append(out, f)
		for v := range Known() {
			if plainOf[v] == f {
				out = append(out, v)
			}
		}
	}
	return out
}

// Base returns the base name of a file without the extension that [Parse]
// recognizes: "report" for "report.pdf", "a" for "a.tar.gz". A name that is only
// an extension (".profile") is returned unchanged.
func Base(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	for _, f := range twoParts {
		if n := len(name) - len(f) - 1; n > 0 && name[n] == '.' && strings.EqualFold(name[n+1:], string(f)) {
			return name[:n]
		}
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}
