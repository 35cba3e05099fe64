package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/filewright/filewright/status"
)

// A DeliveryTarget is an element of deliver in POST /do: where the service writes a result.
type DeliveryTarget struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// States of a [DeliveryStatus].
const (
	DeliveryPending   = "pending"   // another attempt is due, or the operation is not finished
	DeliveryDelivered = "delivered" // the server of the URL has accepted the result
	DeliveryFailed    = "failed"    // no attempt follows
)

// A DeliveryStatus is the state of the delivery of one result.
type DeliveryStatus struct {
	State        string    `json:"state"`
	Attempts     int       `json:"attempts"`
	NextAttempt  time.Time `json:"next_attempt,omitzero"`
	DeliveredAt  time.Time `json:"delivered_at,omitzero"`
	ErrorCode    string    `json:"error_code,omitempty"` // of the last attempt, if it failed
	ErrorMessage string    `json:"error_message,omitempty"`
}

// A Delivery writes the results of operations to URLs.
type Delivery interface {
	// CheckDelivery returns the error of POST /do unless the results of op, which has its items, can
	// be delivered to the targets.
	CheckDelivery(op *status.Operation, targets []DeliveryTarget) error

	// AddDelivery stores the targets of op, which does not exist yet. Once it returns, the targets
	// survive a crash.
	AddDelivery(ctx context.Context, op *status.Operation, targets []DeliveryTarget) error

	// DropDelivery forgets the targets of an operation that was not created.
	DropDelivery(ctx context.Context, operation string) error

	// Deliveries returns the deliveries of those operations that have targets, by operation and by
	// the key of the result. A result without an element is pending.
	Deliveries(ctx context.Context, operations []string) (map[string]map[string]DeliveryStatus, error)
}

// delivery returns what delivers results, or nil.
func (s *Service) delivery() Delivery {
	for _, e := range s.extensions {
		if e.Delivery != nil {
			return e.Delivery
		}
	}
	return nil
}

// checkDelivery returns the error for impossible targets, before anything is queued.
func (s *Service) checkDelivery(op *status.Operation, targets []DeliveryTarget) error {
	if len(targets) == 0 {
		return nil
	}
	d := s.delivery()
	if d == nil {
		return problem(http.StatusBadRequest, "invalid_request", "this server does not deliver results; download them").about("deliver")
	}
	return d.CheckDelivery(op, targets)
}

// submitDelivered submits an operation with its targets. The targets are stored first, so that an
// accepted operation never lacks them.
func (s *Service) submitDelivered(ctx context.Context, op *status.Operation, targets []DeliveryTarget) (*status.Operation, error) {
	if len(targets) == 0 {
		return s.tracker.Submit(ctx, *op)
	}
	d := s.delivery()
	if err := d.AddDelivery(ctx, op, targets); err != nil {
		return nil, err
	}
	stored, err := s.tracker.Submit(ctx, *op)
	// Whether an operation was stored is unknown if the database failed. The delivery then finds out.
	if err == nil && stored.ID != op.ID || err != nil && asProblem(err).Status < http.StatusInternalServerError {
		if derr := d.DropDelivery(context.WithoutCancel(ctx), op.ID); derr != nil {
			s.log.Warn("cannot forget the delivery of an operation that was not created; it ends by itself", "operation", op.ID, "err", derr)
		}
	}
	return stored, err
}

// describe is Describe for several operations, with the state of their deliveries.
func (s *Service) describe(ctx context.Context, ops ...*status.Operation) ([]OperationStatus, error) {
	out := make([]OperationStatus, len(ops))
	ids := make([]string, len(ops))
	for i, op := range ops {
		out[i], ids[i] = s.Describe(op), op.ID
	}
	d := s.delivery()
	if d == nil || len(ops) == 0 {
		return out, nil
	}
	all, err := d.Deliveries(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range out {
		states, ok := all[out[i].MainTaskID]
		if !ok {
			continue
		}
		for j := range out[i].FilesData {
			f := &out[i].FilesData[j]
			if f.Status == string(status.Failed) {
				continue // there is nothing to deliver
			}
			one := DeliveryStatus{State: DeliveryPending}
			if have, ok := states[f.FileKey]; ok && f.Status == string(status.Completed) {
				one = have
			}
			f.Delivery = &one
		}
	}
	return out, nil
}
