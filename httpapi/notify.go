package httpapi

import (
	"strings"
	"time"

	"github.com/filewright/filewright/status"
)

// A notification is the body of a webhook.
type notification struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Payload   struct {
		MainTask mainTask    `json:"main_task"`
		FileTask *FileStatus `json:"file_task,omitempty"`
	} `json:"payload"`
}

type mainTask struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Count    *taskCount        `json:"count,omitempty"`
	Notes    map[string]string `json:"notes,omitempty"`
	FileData []FileStatus      `json:"file_data,omitempty"`
}

type taskCount struct {
	Total   int `json:"total"`
	Success int `json:"success"`
	Failed  int `json:"failed"`
}

// Notification returns the webhook body for an event. kind is the event type, at its time, and op
// the operation at that time. An "operation.…" event covers all items; a "fileTask.…" event covers
// the first element of files_data. See webhook.Event.
func (s *Service) Notification(kind string, at time.Time, op *status.Operation) ([]byte, error) {
	n := notification{Type: kind, Timestamp: stamp(at)}
	files := s.Describe(op).FilesData
	n.Payload.MainTask = mainTask{ID: op.ID, Status: string(op.State), Notes: op.Notes}
	if strings.HasPrefix(kind, "fileTask.") {
		if len(files) > 0 {
			n.Payload.FileTask = &files[0]
		}
		return marshal(n)
	}
	count := &taskCount{Total: len(files)}
	for _, f := range files {
		switch status.State(f.Status) {
		case status.Completed:
			count.Success++
		case status.Failed:
			count.Failed++
		}
	}
	n.Payload.MainTask.Count, n.Payload.MainTask.FileData = count, files
	return marshal(n)
}
