package extract

import (
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// Outline reads the bookmarks of the document.
func Outline(d *pdfium.Document) []model.Bookmark {
	const most = 5000
	in := d.In
	var out []model.Bookmark
	seen := make(map[uint64]bool) // damaged files have cycles
	var walk func(parent uint64, level int)
	walk = func(parent uint64, level int) {
		for b := in.Call("FPDFBookmark_GetFirstChild", d.Ptr, parent); b != 0 && !seen[b] && len(out) < most; b = in.Call("FPDFBookmark_GetNextSibling", d.Ptr, b) {
			seen[b] = true
			title := pdfium.Utf16String(in.WithBuffer(4096, func(p, n uint64) int { return in.Int("FPDFBookmark_GetTitle", b, p, n) }))
			m := model.Bookmark{Title: model.Plain(title), Level: level}
			if dest := in.Call("FPDFBookmark_GetDest", d.Ptr, b); dest != 0 {
				m.Page = in.Int("FPDFDest_GetDestPageIndex", d.Ptr, dest) + 1
			}
			out = append(out, m)
			if level < 9 {
				walk(b, level+1)
			}
		}
	}
	walk(0, 1)
	return out
}
