package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// value returns the result of a query for one number.
func value(t *testing.T, url, text string) (n int, err error) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return 0, err
	}
	defer c.Close(t.Context())
	return n, c.QueryRow(t.Context(), text).Scan(&n)
}

func TestNew(t *testing.T) {
	t.Parallel()
	a, b := pgtest.New(t), pgtest.New(t)
	if _, err := value(t, a, `CREATE TABLE t AS SELECT 1 AS n; SELECT 1`); err == nil {
		t.Error("two statements at once were accepted")
	}
	c, err := pgx.Connect(t.Context(), a)
	systest.NoError(t, err)
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), `CREATE TABLE t AS SELECT 7 AS n`); err != nil {
		t.Fatal(err)
	}
	if n, err := value(t, a, `SELECT n FROM t`); err != nil || n != 7 {
		t.Errorf("read %d, error %v", n, err)
	}
	if n, err := value(t, b, `SELECT n FROM t`); err == nil {
		t.Errorf("the table of another database holds %d", n)
	}
}

// TestRestart crashes and stops a server: its data survives.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := pgtest.Own(t)
	url := s.Database(t)
	c, err := pgx.Connect(t.Context(), url)
	systest.NoError(t, err)
	if _, err := c.Exec(t.Context(), `CREATE TABLE t AS SELECT 7 AS n`); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func() error{"Kill": s.Kill, "Down": s.Down} {
		systest.NoError(t, end())
		if n, err := value(t, url, `SELECT n FROM t`); err == nil {
			t.Errorf("%s: read %d from a server that is down", name, n)
		}
		systest.NoError(t, s.Up())
		if n, err := value(t, url, `SELECT n FROM t`); err != nil || n != 7 {
			t.Errorf("%s: read %d, error %v", name, n, err)
		}
	}
	_ = c.Close(t.Context()) // the connection is broken
}

// TestPrepare copies a prepared database.
func TestPrepare(t *testing.T) {
	t.Parallel()
	s := pgtest.Own(t)
	failed := errors.New("failed")
	if err := s.Prepare(func(string) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error is %v, want %v", err, failed)
	}
	if n, err := value(t, s.Database(t), `SELECT n FROM t`); err == nil {
		t.Errorf("read %d although nothing was prepared", n)
	}
	if err := s.Prepare(func(url string) error {
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return err
		}
		defer c.Close(t.Context())
		_, err = c.Exec(t.Context(), `CREATE TABLE t AS SELECT 7 AS n`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 { // concurrently
		wg.Go(func() {
			url, err := s.New()
			if err != nil {
				t.Error(err)
				return
			}
			if n, err := value(t, url, `SELECT n FROM t`); err != nil || n != 7 {
				t.Errorf("read %d, error %v", n, err)
			}
		})
	}
	wg.Wait()
}

func Example() {
	s, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	url, err := s.New() // postgres://…
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	var n int
	err = c.QueryRow(ctx, `SELECT 6 * 7`).Scan(&n)
	fmt.Println(n, err)
	// Output: 42 <nil>
}
