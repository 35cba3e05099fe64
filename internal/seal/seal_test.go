package seal_test

import (
	"testing"

	"github.com/filewright/filewright/internal/seal"
	"github.com/filewright/filewright/internal/systest"
)

func TestSealer(t *testing.T) {
	t.Parallel()
	sealer := func(purpose string, secrets ...string) seal.Sealer {
		var keys [][]byte
		for _, s := range secrets {
			keys = append(keys, []byte(s))
		}
		s, err := seal.New(purpose, keys)
		systest.NoError(t, err)
		return s
	}
	const old, fresh = "0123456789abcdef", "fedcba9876543210"
	sealed := sealer("a", old).Seal([]byte("hello"), "id")
	for _, tt := range []struct {
		name string
		s    seal.Sealer
		id   string
		want bool
	}{
		{"same", sealer("a", old), "id", true},
		{"second secret", sealer("a", fresh, old), "id", true},
		{"other secret", sealer("a", fresh), "id", false},
		{"other purpose", sealer("b", old), "id", false},
		{"other record", sealer("a", old), "di", false},
	} {
		if plain, ok := tt.s.Open(sealed, tt.id); ok != tt.want || ok && string(plain) != "hello" {
			t.Errorf("%s: Open = %q, %t", tt.name, plain, ok)
		}
	}
}
