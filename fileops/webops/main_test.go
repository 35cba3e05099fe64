package webops

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/engine"
)

// shared is the engine of most tests, because a browser for each test would be too many.
var shared *Engine

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "webops-test-")
	if err != nil {
		panic(err)
	}
	shared, err = New(context.Background(), Options{Sandbox: engine.NewSandbox(), NoSandbox: os.Geteuid() == 0, TempDir: dir, Timeout: 5 * time.Minute})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	shared.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		fmt.Println("left behind:", left, err)
		code = 1
	}
	os.RemoveAll(dir)
	os.Exit(code)
}
