package pdfops_test

import (
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
)

// TestSuite is not parallel: the suite counts goroutines.
func TestSuite(t *testing.T) {
	sample := func(t testing.TB, f format.Format) *fileops.File {
		if f == format.PDF {
			return pdf("sample.pdf", rich("sample"))
		}
		return fileopstest.Sample(t, f)
	}
	locked := func(t testing.TB, f format.Format) *fileops.File {
		return pdf("sample.pdf", encrypted(t, rich("sample"), "0pensesame", "owner", "256"))
	}
	for name, tools := range variants(t) {
		for action, s := range map[string]fileopstest.Suite{
			"lock":     {Action: tools.Lock(), Fixture: sample, Args: fileops.Args{"password": "0pensesame"}},
			"unlock":   {Action: tools.Unlock(), Fixture: locked, Args: fileops.Args{"password": "0pensesame"}},
			"reset":    {Action: tools.ResetPassword(), Fixture: locked, Args: fileops.Args{"old_password": "0pensesame", "new_password": "abracadabra"}},
			"extract":  {Action: tools.ExtractPages(), Fixture: sample, Args: fileops.Args{"pages": "1"}},
			"split":    {Action: tools.Split(), Fixture: sample},
			"flatten":  {Action: tools.Flatten(), Fixture: sample},
			"metadata": {Action: tools.Metadata(), Fixture: sample, Args: fileops.Args{"set": map[string]any{"title": "A new title"}}},
			"numbers":  {Action: tools.PageNumbers(), Fixture: sample},
			"mark":     {Action: tools.Watermark(), Fixture: sample, Args: fileops.Args{"text": "Draft"}},
			"fill":     {Action: tools.FillForm(), Fixture: sample, Args: fileops.Args{"fields": map[string]any{"field": "filled"}}},
			"rotate":   {Action: tools.Rotate(), Fixture: sample, Args: fileops.Args{"angle": 90}},
			"compress": {Action: tools.Compress(), Fixture: sample},
			"merge":    {Action: tools.Merge(tools.FromImages()), Fixture: sample},
			"images":   {Action: tools.FromImages(), Fixture: sample},
			"album":    {Action: tools.ImagesToPDF(), Fixture: sample},
		} {
			if external := action == "lock" || action == "unlock" || action == "reset"; testing.Short() && external != (name == "qpdf") {
				continue // qpdf makes no difference for the others, unless a file is damaged
			}
			t.Run(name+"/"+action, func(t *testing.T) { fileopstest.Run(t, s) })
		}
	}
}
