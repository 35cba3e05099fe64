package dashboard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/dashboard/thumbnail"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// thumbnail answers GET …/files/{key}/thumbnail with a small picture of a visitor's file, or with 204
// if there is none: browsers report any error of a picture to their console.
func (d *Dashboard) thumbnail(v *visit) error {
	none := func(cache string) error {
		v.w.Header().Set("Cache-Control", cache)
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	uploads := d.cfg.Service.Uploads()
	f, err := uploads.Ready(v.r.Context(), v.owner(), v.r.PathValue("key"))
	switch p := httpapi.ProblemOf(err); {
	case err == nil:
	case p.Status < http.StatusInternalServerError:
		return none("no-store")
	default:
		return err
	}
	side := thumbnail.Large
	if v.r.URL.RawQuery == "small" {
		side = thumbnail.Small
	}
	p, err := d.cfg.Thumbnails.Draw(v.r.Context(), f, side, func(ctx context.Context) (blob.Object, error) { return uploads.OpenFile(ctx, v.owner(), f) })
	switch {
	case errors.Is(err, thumbnail.ErrNone):
		return none("private, max-age=600")
	case errors.Is(err, thumbnail.ErrBusy):
		return none("no-store")
	case err != nil:
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", p.Type)
	h.Set("Content-Disposition", "inline")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("ETag", `"`+f.ETag+"-"+strconv.Itoa(side)+`"`)
	h.Set("Cache-Control", "private, no-cache")
	http.ServeContent(v.w, v.r, "", time.Time{}, bytes.NewReader(p.Content))
	return nil
}

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
