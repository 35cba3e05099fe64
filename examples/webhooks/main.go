// Command webhooks receives webhooks: it verifies that a request comes from the service, and prints
// each event once, even if it is sent again.
//
//	WEBHOOK_SECRETS=whsec_… go run ./examples/webhooks
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/status/webhook"
)

// An event holds the members of the request body that this receiver uses.
type event struct {
	Type    string `json:"type"`
	Payload struct {
		MainTask struct {
			ID     string            `json:"id"`
			Status string            `json:"status"`
			Notes  map[string]string `json:"notes"`
		} `json:"main_task"`
		FileTask struct {
			FileName     string `json:"file_name"`
			DownloadLink string `json:"download_link"`
			ErrorMessage string `json:"error_message"`
		} `json:"file_task"`
	} `json:"payload"`
}

// A receiver remembers the deliveries that it has seen. A real receiver would use a table, and do
// the work after the response.
type receiver struct {
	secrets []string // two while one is replaced

	mu   sync.Mutex
	seen map[string]bool
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if err := webhook.Verify(rc.secrets, r.Header, body, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, "the body is not JSON", http.StatusBadRequest)
		return
	}
	rc.mu.Lock()
	known := rc.seen[r.Header.Get("webhook-id")]
	rc.seen[r.Header.Get("webhook-id")] = true
	rc.mu.Unlock()
	if !known {
		fmt.Println(strings.TrimRight(fmt.Sprintln(e.Type, e.Payload.MainTask.ID, e.Payload.MainTask.Status,
			e.Payload.FileTask.FileName, e.Payload.FileTask.DownloadLink, e.Payload.FileTask.ErrorMessage), " \n"))
	}
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	rc := &receiver{secrets: strings.Fields(os.Getenv("WEBHOOK_SECRETS")), seen: make(map[string]bool)}
	if len(rc.secrets) == 0 {
		log.Fatal("WEBHOOK_SECRETS is not set")
	}
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "127.0.0.1:9090"), rc))
}
