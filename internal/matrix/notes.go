package matrix

// A note describes properties of an engine that its Spec cannot express. The figures are the
// defaults of the engine's package.
type note struct{ engine, limits, quality string }

func notes() []note {
	return []note{
		{"libvips", "100 megapixels a picture or page, 2000 in all; 1000 pages or frames; 512 MiB", "What is lossless stays so (png, tiff, bmp, ico). Formats that lose detail are written at a high quality; `quality` sets another. Orientation is applied, transparency kept where the target has it and put on white where not."},
		{"ffmpeg", "24 hours; 100 megapixels a frame; 32 streams; 300 s of animation; 100 files to join", "Video is H.264, VP9 in webm, at constant quality; streams that fit the target are copied without loss. Duration stays within 100 ms. Sound is at the rate that suits the format (`audio_bitrate`), lossless in wav, flac, aiff."},
		{"libreoffice", "10 000 parts and 1 GiB unpacked; 10 million filled cells in ods and fods; text of 128 MiB; results of 2 GiB; 2 minutes", "Text, tables and pictures are kept, layout as LibreOffice shows it; fonts that are not installed are replaced by metric equals."},
		{"pandoc", "those of libreoffice", "The structure of a document (headings, lists, tables, links, pictures), not its layout."},
		{"pdfium", "5000 pages at once (`pages` chooses among more); 100 megapixels a page; 512 MiB", "Pages as they print, at the `dpi` asked for. docx is made of paragraphs, columns, ruled tables and pictures that can be edited; a page without text becomes a picture."},
		{"pdfcpu", "512 MiB; 5000 pages, also of all that are merged", "compress only touches pictures and streams: text, links, forms, tags and outlines stay. A result is never larger than its input."},
		{"qpdf", "new passwords of 127 bytes", "AES-256 (revision 6). The content is not changed. unlock and reset_password open revisions 2 to 6, RC4 and AES, with the user or the owner password, in every spelling and encoding that is usual; not what is encrypted for certificates. Without qpdf the same is done in Go."},
		{"klauspost/compress", "10 000 entries; names of 1000 bytes; 32 folders deep", "Lossless."},
	}
}
