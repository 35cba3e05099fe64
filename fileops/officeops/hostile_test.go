package officeops_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/internal/systest"
)

// takenOver stands for a compromised LibreOffice. It writes the list of attacks that
// succeeded, or a link to a file that it cannot read.
const takenOver = `#!/bin/bash
case "$*" in
*--version*) echo "LibreOffice 99.1.2"; exit;;
*--terminate_after_init*) exit;;
esac
for in; do :; done
tries() { "$@" 2>/dev/null && echo "$*"; }
while [ "$1" != --outdir ]; do shift; done
out=$2/$(basename "${in%.*}").txt
if grep -q canary "$in"; then
	ln -s "$(sed -n 's/.*canary=//p' "$in")" "$out"
	exit
fi
{
	tries grep -q content "$in" >/dev/null && echo read
	{ echo spoilt >"$in"; } 2>/dev/null && echo write
	tries truncate -s 0 "$in"
	tries dd if=/dev/null of="$in" conv=notrunc
	tries chmod 0 "$in"
	tries touch "$in"
	tries ln "$in" own
	tries mv "$in" own
	tries mv "$(dirname "$in")" own
	tries rm -f "$in"
	tries mkdir "$(dirname "$in")/new"
} >"$out"
exit 0
`

func takeover(t *testing.T) *officeops.Engine {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"soffice", "soffice.bin"} {
		systest.WriteScript(t, filepath.Join(dir, name), takenOver)
	}
	e, err := officeops.New(t.Context(), officeops.Options{
		LibreOffice: filepath.Join(dir, "soffice"), Python: engine.None, Pandoc: engine.None, TempDir: t.TempDir(), Sandbox: engine.NewSandbox(),
	})
	systest.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// The input may be a hard link to the uploaded file.
func TestInputStays(t *testing.T) {
	t.Parallel()
	e := takeover(t)
	stored := filepath.Join(t.TempDir(), "stored.rtf")
	content := []byte(`{\rtf1 content}`)
	systest.NoError(t, os.WriteFile(stored, content, 0o640))
	before, err := os.Stat(stored)
	systest.NoError(t, err)
	out, err := convert(t.Context(), e, fileops.Path(stored), format.TXT)
	systest.NoError(t, err)
	if got := strings.TrimSpace(string(out)); got != "read" {
		t.Errorf("it can: %s", got)
	}
	after, err := os.Stat(stored)
	systest.NoError(t, err)
	if b, err := os.ReadFile(stored); err != nil || !bytes.Equal(b, content) || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the input is %q, %v, %v; %v", b, after.Mode(), after.ModTime(), err)
	}
}

// A link is not accepted as a result: the server might be able to read its target.
func TestLinkIsNoResult(t *testing.T) {
	t.Parallel()
	e := takeover(t)
	canary := filepath.Join(t.TempDir(), "canary")
	systest.NoError(t, os.WriteFile(canary, []byte("secret"), 0o600))
	in := fileops.Bytes("in.rtf", []byte(`{\rtf1 x}`+"\ncanary="+canary+"\n"))
	if out, err := convert(t.Context(), e, in, format.TXT); !errors.Is(err, fileops.ErrEngine) {
		t.Errorf("got %q, %v", out, err)
	}
}
