//go:build linux

package main

import "github.com/filewright/filewright/fileops"

var (
	pageSizes    = []int{1, 10, 100, 500, 1000, 2000}
	pictureSizes = []int{1, 4, 16, 36, 64, 100}
	memberSizes  = []int{1, 10, 100, 1000, 10_000, 100_000}
	fileSizes    = []int{1, 2, 10, 30, 100}
	rowSizes     = []int{10, 100, 1000, 10_000, 100_000, 1_000_000}
	secondSizes  = []int{1, 10, 60, 300, 600}
	clientSizes  = []int{1, 2, 4, 8, 16, 32, 64}
)

func to(ext string) fileops.Args { return fileops.Args{"convert_to": ext} }

// allGroups returns what is measured.
func allGroups() []group {
	secret := fileops.Args{"password": "secret"}
	return []group{
		{name: "pages", title: "Pages of a PDF file", unit: "pages", text: "A page has 40 lines of text.", series: []series{
			{name: "PDF: merge with itself", action: "merge", sizes: pageSizes, files: twice(pages)},
			{name: "PDF: compress", action: "compress", sizes: pageSizes, files: pages},
			{name: "PDF: lock", action: "lock", args: secret, sizes: pageSizes, files: pages},
			{name: "PDF: unlock", action: "unlock", args: secret, sizes: pageSizes, files: locked},
			{name: "PDF: reset_password", action: "reset_password", args: fileops.Args{"old_password": "secret", "new_password": "other"}, sizes: pageSizes, files: locked},
			{name: "PDF: rotate", action: "rotate", args: fileops.Args{"angle": 90}, sizes: pageSizes, files: pages},
			{name: "PDF: watermark", action: "watermark", args: fileops.Args{"text": "DRAFT"}, sizes: pageSizes, files: pages},
			{name: "PDF: page_numbers", action: "page_numbers", sizes: pageSizes, files: pages},
			{name: "PDF: split in ten pages each", action: "split", args: fileops.Args{"every": 10}, sizes: pageSizes, files: pages},
			{name: "PDF: extract_pages, the first", action: "extract_pages", args: fileops.Args{"pages": "1"}, sizes: pageSizes, files: pages},
		}},
		{name: "reading", title: "Pages of a PDF file, to other formats", unit: "pages", series: []series{
			{name: "PDF → TXT", action: "convert", args: to("txt"), sizes: pageSizes, files: pages},
			{name: "PDF → DOCX", action: "convert", args: to("docx"), sizes: pageSizes, files: pages},
			{name: "PDF → HTML", action: "convert", args: to("html"), sizes: pageSizes, files: pages},
			{name: "PDF → PNG", action: "convert", args: to("png"), sizes: []int{1, 10, 50, 100, 200}, files: pages},
			{name: "PDF: thumbnail", action: "thumbnail", sizes: pageSizes, files: pages},
			{name: "PDF: inspect", action: "inspect", sizes: pageSizes, files: pages},
			{name: "scanned PDF: ocr", action: "ocr", sizes: []int{1, 2, 5, 10}, files: scans},
		}},
		{name: "documents", title: "Pages of a document", unit: "pages", text: "A page has four paragraphs.", series: []series{
			{name: "DOCX → PDF", action: "convert", args: to("pdf"), sizes: []int{1, 10, 50, 100, 500}, files: docx},
			{name: "HTML → PDF", action: "convert", args: to("pdf"), sizes: []int{1, 10, 50, 100, 500}, files: html},
			{name: "MD → DOCX", action: "convert", args: to("docx"), sizes: []int{1, 10, 50, 100, 500}, files: paragraphs},
			{name: "DOCX: compress", action: "compress", sizes: []int{1, 10, 50, 100, 500}, files: docx},
			{name: "DOCX: lock", action: "lock", args: secret, sizes: []int{1, 10, 50, 100, 500}, files: docx},
		}},
		{name: "pictures", title: "Megapixels of a picture", unit: "megapixels", text: "A JPEG file with the noise of a photograph.", series: []series{
			{name: "JPEG → PNG", action: "convert", args: to("png"), sizes: pictureSizes, files: picture},
			{name: "JPEG → WebP", action: "convert", args: to("webp"), sizes: pictureSizes, files: picture},
			{name: "JPEG → AVIF", action: "convert", args: to("avif"), sizes: pictureSizes, files: picture},
			{name: "JPEG → PDF", action: "convert", args: to("pdf"), sizes: pictureSizes, files: picture},
			{name: "JPEG: compress", action: "compress", sizes: pictureSizes, files: picture},
			{name: "JPEG: rotate", action: "rotate", args: fileops.Args{"angle": 90}, sizes: pictureSizes, files: picture},
			{name: "JPEG: watermark", action: "watermark", args: fileops.Args{"text": "DRAFT"}, sizes: pictureSizes, files: picture},
			{name: "JPEG: thumbnail", action: "thumbnail", sizes: pictureSizes, files: picture},
		}},
		{name: "members", title: "Members of an archive", unit: "members", text: "A member has 200 bytes. Servers read archives of up to 10,000 members unless `--max-entries` is higher.", series: []series{
			{name: "ZIP: compress", action: "compress", sizes: memberSizes, files: members},
			{name: "ZIP: extract, one of them", action: "extract", args: fileops.Args{"members": "folder-0/file-0.txt"}, sizes: memberSizes, files: members},
			{name: "ZIP → TAR.GZ", action: "convert", args: to("tar.gz"), sizes: memberSizes, files: members},
			{name: "ZIP: inspect", action: "inspect", sizes: memberSizes, files: members},
		}},
		{name: "files", title: "Files of one operation", unit: "files", series: []series{
			{name: "merge of PDF files", action: "merge", sizes: fileSizes, files: documents},
			{name: "zip of text files", action: "zip", sizes: append(fileSizes[:len(fileSizes):len(fileSizes)], 1000), files: texts},
		}},
		{name: "rows", title: "Rows of a table", unit: "rows", series: []series{
			{name: "CSV → JSON", action: "convert", args: to("json"), sizes: rowSizes, files: rows},
			{name: "CSV → XLSX", action: "convert", args: to("xlsx"), sizes: rowSizes[:5], files: rows},
		}},
		{name: "seconds", title: "Seconds of sound", unit: "seconds", series: []series{
			{name: "WAV → MP3", action: "convert", args: to("mp3"), sizes: secondSizes, files: seconds},
			{name: "WAV → FLAC", action: "convert", args: to("flac"), sizes: secondSizes, files: seconds},
		}},
		{name: "clients", title: "Clients at the same time", unit: "clients",
			text: "Processor time is that of the server for one request, with SQLite and API keys. A loop uploads a file of 1 KB, zips it, waits for the result and downloads it.", series: []series{
				{name: "status of an operation", sizes: clientSizes, clients: (*client).poll},
				{name: "list of operations", sizes: clientSizes, clients: (*client).list},
				{name: "upload of 10 KB", sizes: clientSizes, clients: (*client).upload},
				{name: "loop: upload, zip, download", sizes: clientSizes, clients: (*client).loop},
			}},
	}
}
