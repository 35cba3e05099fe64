package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/status"
)

// A meter measures reads and writes of a database.
type meter struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
}

const (
	kindRead  = "read"
	kindWrite = "write"
)

func newMeter() *meter {
	m := &meter{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "filewright_database_seconds", Help: "Duration of reads and writes of the database, including waits for their turn.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"kind"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "filewright_database_errors_total", Help: "Reads and writes that failed because the database was unavailable or out of space.",
		}, []string{"kind"}),
	}
	for _, kind := range []string{kindRead, kindWrite} {
		m.errors.WithLabelValues(kind)
	}
	return m
}

// done records a call that started at the given time and ended with err, and returns
// err.
func (m *meter) done(kind string, began time.Time, err error) error {
	m.seconds.WithLabelValues(kind).Observe(time.Since(began).Seconds())
	if errors.Is(err, status.ErrUnavailable) || errors.Is(err, syscall.ENOSPC) {
		m.errors.WithLabelValues(kind).Inc()
	}
	return err
}

var (
	sizeDesc        = prometheus.NewDesc("filewright_database_bytes", "Size of the database.", nil, nil)
	connectionsDesc = prometheus.NewDesc("filewright_database_connections", "Connections of this server to PostgreSQL.", []string{"state"}, nil)
	waitsDesc       = prometheus.NewDesc("filewright_database_connection_waits_total", "Waits for a connection because all of the pool were in use.", nil, nil)
	backupDesc      = prometheus.NewDesc("filewright_last_backup_timestamp_seconds", "Time of the last complete backup by refserver backup.", nil, nil)
)

// Collectors returns metrics of the database, for httpapi.Config.Collectors.
func (db *DB) Collectors() []prometheus.Collector {
	return []prometheus.Collector{db.meter.seconds, db.meter.errors, collector{db}}
}

type collector struct{ db *DB }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- sizeDesc
	ch <- connectionsDesc
	ch <- waitsDesc
	ch <- backupDesc
}

// Collect implements prometheus.Collector. While the database cannot be reached,
// Collect omits the metrics that it has to query.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if pg := c.db.pg; pg != nil {
		s := pg.pool.Stat()
		for state, n := range map[string]int32{"used": s.AcquiredConns(), "idle": s.IdleConns(), "max": s.MaxConns()} {
			ch <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(n), state)
		}
		ch <- prometheus.MustNewConstMetric(waitsDesc, prometheus.CounterValue, float64(s.EmptyAcquireCount()))
	}
	if n, err := c.db.size(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(sizeDesc, prometheus.GaugeValue, float64(n))
	}
	if t, err := c.db.LastBackup(ctx); err == nil && !t.IsZero() {
		ch <- prometheus.MustNewConstMetric(backupDesc, prometheus.GaugeValue, float64(t.Unix()))
	}
}

// size returns the size of the database in bytes.
func (db *DB) size(ctx context.Context) (n int64, err error) {
	if s, ok := db.engine.(*sqlite); ok {
		for _, suffix := range []string{"", "-wal"} {
			i, err := os.Stat(s.path + suffix)
			if err == nil {
				n += i.Size()
			} else if !errors.Is(err, fs.ErrNotExist) {
				return 0, err
			}
		}
		return n, nil
	}
	err = db.view(ctx, func(ctx context.Context, t tx) error {
		return t.row(ctx, `SELECT pg_database_size(current_database())`).Scan(&n)
	})
	return n, err
}

// lastBackup is the setting that holds the time of the last backup, in seconds
// since 1970.
const lastBackup = "last_backup"

// LastBackup returns the time of the last backup that NoteBackup recorded, or the zero
// time.
func (db *DB) LastBackup(ctx context.Context) (time.Time, error) {
	v, err := db.Setting(ctx, lastBackup)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	return time.Unix(n, 0), err
}

// NoteBackup records that a backup that started at t is complete.
func (db *DB) NoteBackup(ctx context.Context, t time.Time) error {
	return db.tx(ctx, func(ctx context.Context, tx tx) error {
		_, err := tx.exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
			lastBackup, []byte(strconv.FormatInt(t.Unix(), 10)))
		return err
	})
}
