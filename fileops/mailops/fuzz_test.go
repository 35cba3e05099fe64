package mailops_test

import (
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/mailops"
	"github.com/filewright/filewright/internal/specimen"
)

// Any message of Outlook is read, or refused with a reason.
func FuzzOutlook(f *testing.F) {
	b, _ := specimen.Of(f, format.MSG).Bytes()
	f.Add(b)
	e := engine(f, mailops.Limits{})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := fileops.Bytes("a.msg", b)
		for _, to := range []string{"html", "eml"} {
			if _, err := run(t, e.Convert(), to, in); err != nil && fileops.Code(err) == "internal_error" {
				t.Errorf("to %s: %v", to, err)
			}
		}
		if _, err := run(t, e.Extract(), "", in); err != nil && fileops.Code(err) == "internal_error" {
			t.Errorf("extract: %v", err)
		}
	})
}
