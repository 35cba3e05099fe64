package logtest_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/filewright/filewright/internal/logtest"
)

func Example() {
	var buf logtest.Buffer
	log := slog.New(slog.NewTextHandler(&buf, nil))
	var writing sync.WaitGroup
	for range 100 {
		writing.Go(func() { log.Info("begun") })
	}
	writing.Wait()
	fmt.Println(strings.Count(buf.String(), "\n"))
	// Output: 100
}
