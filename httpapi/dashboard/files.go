package dashboard

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// file answers GET …/files/{key} with a preview of a visitor's file. It serves only types that
// browsers do not execute. Other files can be downloaded from the service.
func (d *Dashboard) file(v *visit) error {
	f, obj, err := d.cfg.Service.Uploads().Open(v.r.Context(), v.owner(), v.r.PathValue("key"))
	if errors.Is(err, upload.ErrExpired) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	defer obj.Close()
	typ := previewType(f.Name)
	if typ == "" {
		return fs.ErrNotExist
	}
	h := v.w.Header()
	h.Set("Content-Type", typ)
	h.Set("Content-Disposition", "inline")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'self'; sandbox")
	if typ == "application/pdf" {
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; frame-ancestors 'self'") // a sandbox directive would keep Chromium from showing PDFs
	}
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("ETag", `"`+f.ETag+`"`)
	h.Set("Cache-Control", "private, no-cache")
	var content io.ReadSeeker = io.NewSectionReader(obj, 0, obj.Info().Size)
	if l, ok := obj.(blob.LocalObject); ok {
		content = l.File()
	}
	rc := http.NewResponseController(v.w)
	rc.SetWriteDeadline(time.Now().Add(fileTime))
	defer rc.SetWriteDeadline(time.Time{}) // the connection may serve more requests
	http.ServeContent(v.w, v.r, "", f.Created, content)
	return nil
}
