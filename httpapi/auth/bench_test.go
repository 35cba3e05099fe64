package auth_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

// BenchmarkAuthenticate authenticates one key in many concurrent requests.
func BenchmarkAuthenticate(b *testing.B) {
	for name, options := range map[string]sqlstore.Options{
		"sqlite":   {Path: filepath.Join(b.TempDir(), "filewright.db")},
		"postgres": {URL: pgtest.New(b)},
	} {
		b.Run(name, func(b *testing.B) {
			db, err := sqlstore.Open(b.Context(), options)
			systest.NoError(b, err)
			defer db.Close()
			keys := auth.NewKeys(db.Keys(), nil)
			raw, _, err := keys.Create(b.Context(), auth.NewKey{Name: "bench"})
			systest.NoError(b, err)
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				r := request("Authorization", "Bearer "+raw)
				for pb.Next() {
					if _, err := keys.Authenticate(r); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/float64(runtime.GOMAXPROCS(0)), "req/s/core")
		})
	}
}
