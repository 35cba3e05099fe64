package pdf

import "testing"

func TestStringBytes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"(a)": "a", `(\101\7z)`: "A\az", `(\(\)\\)`: `()\`, "(a\\\nb)": "ab", "(a\r\nb)": "a\nb", "<41 4>": "A@", `(\q)`: "q", "(": "", "<": "",
	} {
		if got := string(StringBytes([]byte(in))); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
}
