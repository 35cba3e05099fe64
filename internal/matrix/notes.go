package matrix

// A note describes properties of an engine that its Spec cannot express. The figures are the
// defaults of the engine's package.
type note struct{ engine, limits, quality string }

func notes() []note {
	return []note{
		{"libvips", "100 megapixels for a picture or page, 2000 for all pages; 1000 pages or frames; 512 MiB", "png, tiff, bmp and ico are lossless. Other formats are written at a high quality unless `quality` is given. Pictures are turned upright. Transparency is kept, or replaced by white if the format has none. Raw photos are developed by LibRaw with the white balance of the camera, as sRGB with 8 bits; 5 minutes of processor time."},
		{"ffmpeg", "24 hours; 100 megapixels for a frame; 32 streams; 300 s of animation; 100 files to join", "Video is H.264 (VP9 in webm) at constant quality; streams that suit the target format are copied without loss. The duration changes by at most 100 ms; a part is exact to a frame. Audio has the usual bit rate of the format (`audio_bitrate`); wav, flac and aiff are lossless."},
		{"libreoffice", "10 000 parts and 1 GiB unpacked; 10 million filled cells in ods and fods; text of 128 MiB; results of 2 GiB; 2 minutes", "Text, tables and pictures are kept; the layout is that of LibreOffice. Missing fonts are replaced by fonts with the same metrics."},
		{"mailops", "64 MiB; 1000 parts, 30 inside each other", "Header fields, body, its pictures and a list of the attachments. Pictures on servers, scripts and forms are left out."},
		{"subtitleops", "16 MiB; 200 000 subtitles", "Times (ass: hundredths of a second), text, bold, italic, underline, colours and the corner or edge of the picture. Fonts, sizes, effects and exact positions are left out."},
		{"pandoc", "as libreoffice", "The structure of a document (headings, lists, tables, links, pictures), not its layout."},
		{"pdfium", "5000 pages (`pages` selects from a longer document); 100 megapixels for a page; 512 MiB", "Pictures show the pages as printed, at the requested `dpi`. docx has editable paragraphs, columns, tables and pictures; pages without text become pictures."},
		{"pdfcpu", "4 GiB, for compress and ocr 512 MiB; 5000 pages, also for all merged files together", "compress changes only pictures, fonts and streams: text, links, forms, tags and outlines stay. A result is never larger than its input."},
		{"pdftocairo", "512 MiB, 256 MiB for a drawing; 5000 pages; a minute of processor time for a page", "A drawing of each page, as large as the page. Lines and areas stay vectors; text becomes outlines, which cannot be searched."},
		{"libmobi", "512 MiB; 32 MiB for a page, which is a whole book in old files", "Text, pictures, tables, styles and the table of contents of books without digital rights management. Sound, video and dictionaries stay as files that few readers of EPUB show."},
		{"qpdf", "new passwords of 127 bytes", "AES-256 (revision 6). The content does not change. unlock and reset_password open RC4 and AES, revisions 2 to 6, with the user or the owner password in any usual encoding, but not encryption for certificates. Without qpdf, Go code does the same."},
		{"bsdtar", "as klauspost/compress; 10 minutes of processor time to read, 1 hour to write", "Lossless. Reads iso, cab, cpio, ar, lzh and rpm; writes 7z (LZMA), tar.xz and tar.bz2. The result is read again and its entries are counted."},
		{"klauspost/compress", "10 000 entries; names of 1000 bytes; 32 folders deep", "Lossless."},
	}
}
