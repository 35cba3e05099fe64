package engine

import (
	"context"
	"time"

	"github.com/filewright/filewright/internal/worktime"
)

// RunWithin is [Program.Run] with a limit on working time, see [worktime.Context]. It
// fails with cause if the program exceeds the limit.
func (p *Program) RunWithin(ctx context.Context, c Cmd, limit time.Duration, cause error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	proc, err := p.Start(ctx, c)
	if err != nil {
		return err
	}
	defer worktime.AfterFunc(limit, func() { cancel(cause) }, proc.Work())()
	return proc.Wait()
}
