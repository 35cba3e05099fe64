// Package docs has the documentation as files, for the site that refserver serves at /docs.
package docs

import "embed"

// Files has the pages in Markdown, and their pictures.
//
//go:embed *.md guides/*.md design/*.md images/*.png images/*.svg
var Files embed.FS
