package sqlstore_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

// gather returns the metrics of a database as a scrape would.
func gather(t *testing.T, db *sqlstore.DB) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	for _, c := range db.Collectors() {
		r.MustRegister(c)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestCollectors(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *sqlstore.DB{"sqlite": open, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			systest.NoError(t, db.Ping(t.Context()))
			want := []string{
				`filewright_database_seconds_count{kind="read"}`, `filewright_database_seconds_count{kind="write"} 1`,
				`filewright_database_errors_total{kind="write"} 0`, "filewright_database_bytes ",
			}
			if name == "postgres" {
				want = append(want, `filewright_database_connections{state="max"}`)
			}
			text := gather(t, db)
			for _, line := range want {
				if !strings.Contains(text, line) {
					t.Errorf("no %s in\n%s", line, text)
				}
			}
			if strings.Contains(text, "last_backup") {
				t.Errorf("there was no backup:\n%s", text)
			}
			for _, at := range []int64{1000, 2000} {
				systest.NoError(t, db.NoteBackup(t.Context(), time.Unix(at, 0)))
			}
			if text := gather(t, db); !strings.Contains(text, "filewright_last_backup_timestamp_seconds 2000\n") {
				t.Errorf("after a backup:\n%s", text)
			}
			// An error of the caller does not count as a database error.
			if _, err := db.Setting(t.Context(), "missing"); err == nil {
				t.Error("a setting was found that does not exist")
			}
			if text := gather(t, db); !strings.Contains(text, `filewright_database_errors_total{kind="read"} 0`) {
				t.Errorf("after a setting that does not exist:\n%s", text)
			}
		})
	}
}
