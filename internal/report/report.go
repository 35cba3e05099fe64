// Package report defines the result of the action inspect: one JSON object with the
// same keys for all formats, and one object for the kind of file. docs/inspect.md
// describes it for users.
package report

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A Report describes a file. One of its pointers is set, unless the file is encrypted
// and nothing is known about its content.
type Report struct {
	Format    format.Format `json:"format"`
	MediaType string        `json:"media_type"`
	Bytes     int64         `json:"bytes"`

	// Encrypted is set if the file, or content of it, cannot be read by everybody.
	Encrypted bool `json:"encrypted"`

	// Metadata are title, author, subject, keywords, program, created, modified and
	// others as the file has them. Times are in RFC 3339.
	Metadata map[string]string `json:"metadata"`

	// Limits are the largest files for actions on this format. An action without a limit of
	// its own is missing. The engines leave them out: package standard adds them.
	Limits map[string]Limit `json:"limits,omitempty"`

	PDF      *PDF      `json:"pdf,omitempty"`
	Document *Document `json:"document,omitempty"`
	Picture  *Picture  `json:"picture,omitempty"`
	Media    *Media    `json:"media,omitempty"`
	Archive  *Archive  `json:"archive,omitempty"`
	Text     *Text     `json:"text,omitempty"`
	Message  *Message  `json:"message,omitempty"`
}

// A Limit is the largest file that every form of an action takes.
type Limit struct {
	MaxBytes int64 `json:"max_bytes"`
}

// PDF describes a PDF document.
type PDF struct {
	Version     string  `json:"version"`
	Pages       int     `json:"pages"`
	PageWidth   float64 `json:"page_width"`  // of the first page as it is shown, in points
	PageHeight  float64 `json:"page_height"` // of the first page as it is shown, in points
	Tagged      bool    `json:"tagged"`
	Signed      bool    `json:"signed"`
	FormFields  int     `json:"form_fields"`
	Attachments int     `json:"attachments"`
	Scripts     bool    `json:"scripts"`            // has JavaScript
	Language    string  `json:"language,omitempty"` // that the file declares (BCP 47)
	Fonts       []Font  `json:"fonts"`

	Bookmarks []Bookmark `json:"bookmarks,omitempty"` // each before those below it
}

// Bookmark is a bookmark of a PDF document that leads to a page.
type Bookmark struct {
	Title string `json:"title"`
	Page  int    `json:"page"`  // from 1
	Level int    `json:"level"` // from 0
}

// Font is a font of a PDF document.
type Font struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // of ISO 32000-2, table 108: Type1, TrueType, Type0, Type3 …
	Embedded bool   `json:"embedded"`
}

// Document describes a document, workbook, presentation or book.
type Document struct {
	Pages    int      `json:"pages,omitempty"`    // as its program counted them
	Words    int      `json:"words,omitempty"`    // as its program counted them
	Slides   int      `json:"slides,omitempty"`   // of a presentation
	Sheets   []string `json:"sheets,omitempty"`   // names in a workbook
	Chapters int      `json:"chapters,omitempty"` // files of the text of a book
	Macros   bool     `json:"macros"`
	Pictures int      `json:"pictures"`           // picture files in the package
	Language string   `json:"language,omitempty"` // that the file declares
}

// Picture describes a picture.
type Picture struct {
	Width   int     `json:"width"`  // pixels as stored
	Height  int     `json:"height"` // pixels as stored
	Pages   int     `json:"pages"`  // or frames
	Bits    int     `json:"bits"`   // per sample
	Alpha   bool    `json:"alpha"`
	CMYK    bool    `json:"cmyk"`
	Profile bool    `json:"profile"`         // has a colour profile
	DPIX    float64 `json:"dpi_x,omitempty"` // dots per inch
	DPIY    float64 `json:"dpi_y,omitempty"`
}

// Media describes audio or video.
type Media struct {
	Duration float64  `json:"duration"`           // seconds; 0 if unknown
	BitRate  int      `json:"bit_rate,omitempty"` // bit/s of the whole file
	Chapters int      `json:"chapters"`
	Streams  []Stream `json:"streams"`
}

// Stream is a stream of a media file.
type Stream struct {
	Type        string  `json:"type"` // video, audio, subtitle, cover, data or attachment
	Codec       string  `json:"codec"`
	Profile     string  `json:"profile,omitempty"`
	Language    string  `json:"language,omitempty"` // that the file declares
	BitRate     int     `json:"bit_rate,omitempty"` // bit/s
	Width       int     `json:"width,omitempty"`    // pixels as stored
	Height      int     `json:"height,omitempty"`
	PixelFormat string  `json:"pixel_format,omitempty"`
	FPS         float64 `json:"fps,omitempty"`
	HDR         bool    `json:"hdr,omitempty"`
	SampleRate  int     `json:"sample_rate,omitempty"` // Hz
	Channels    int     `json:"channels,omitempty"`
}

// Archive describes an archive or a compressed file.
type Archive struct {
	Files    int   `json:"files"`
	Folders  int   `json:"folders"`
	Links    int   `json:"links"`
	Unpacked int64 `json:"unpacked_bytes"`
}

// Text describes a text file.
type Text struct {
	Encoding   string `json:"encoding"`           // name of the WHATWG Encoding Standard
	Language   string `json:"language,omitempty"` // guessed (BCP 47)
	Lines      int    `json:"lines"`
	Characters int64  `json:"characters"`
	Delimiter  string `json:"delimiter,omitempty"` // of a table
	Rows       int    `json:"rows,omitempty"`      // of a table
	Columns    int    `json:"columns,omitempty"`   // of a table: the most in a row
}

// Message describes an email message.
type Message struct {
	From        string       `json:"from"`
	To          []string     `json:"to"`
	CC          []string     `json:"cc,omitempty"`
	HTML        bool         `json:"html"` // the body is a page
	Attachments []Attachment `json:"attachments"`
}

// Attachment is a file in a message.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
}

// Spec returns the Spec of an action inspect.
func Spec(engine, family, summary string, formats []format.Format, params ...fileops.Param) fileops.Spec {
	return fileops.Spec{
		Name: "inspect", Engine: engine, Family: family, Encrypted: true, Summary: summary,
		Results: map[format.Format]format.Format{format.Any: format.JSON},
		Accepts: []fileops.Accept{{Formats: formats, Params: params}},
	}
}

// New returns the report about the input of a job, without its content.
func New(job *fileops.Job) *Report {
	in := job.Input()
	return &Report{Format: in.Format(), MediaType: in.Format().MIME(), Bytes: in.Size(), Metadata: make(map[string]string)}
}

// maxValue limits the bytes of a value of metadata.
const maxValue = 4000

// Set adds metadata, unless value is empty.
func (r *Report) Set(key, value string) {
	value = strings.TrimSpace(strings.ToValidUTF8(value, "\ufffd"))
	if value != "" && len(r.Metadata) < 200 {
		r.Metadata[key] = strings.ToValidUTF8(value[:min(len(value), maxValue)], "")
	}
}

// SetTime adds a time in any usual form of documents (ISO 8601 without a zone, or that of
// PDF, ISO 32000-2, 7.9.4). It leaves out what is no time.
func (r *Report) SetTime(key, value string) {
	if t, ok := parseTime(strings.TrimSpace(value)); ok {
		r.Metadata[key] = t.Format(time.RFC3339)
	}
}

func parseTime(s string) (time.Time, bool) {
	if p, ok := strings.CutPrefix(s, "D:"); ok {
		p = strings.TrimSuffix(strings.ReplaceAll(p, "'", ""), "Z")
		for _, layout := range []string{"20060102150405-0700", "20060102150405-07", "20060102150405", "200601021504", "20060102", "200601", "2006"} {
			if t, err := time.Parse(layout, p); err == nil {
				return t, true
			}
		}
		return time.Time{}, false
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// Write adds the report as the result of a job.
func (r *Report) Write(job *fileops.Job) error {
	return job.Write(fileops.ResultName(job.Input(), format.JSON), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	})
}
